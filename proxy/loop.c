#include "proxy/loop.h"

#include "gate/base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

int loop_open(struct loop *l, struct err *err)
{
	l->batch_at = l->batch_count = 0;
	l->now_ms = clock_boot_ms();
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	return l->epfd < 0 ? err_sys(err, "make an epoll instance") : 0;
}

void loop_close(struct loop *l)
{
	if (l->epfd >= 0)
		close(l->epfd);
	l->epfd = -1;
}

int loop_watch(struct loop *l, struct watch *w, int fd, uint32_t events, watch_fn *ready,
	       struct err *err)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};

	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		w->fd = -1;
		return err_sys(err, "watch descriptor %d", fd);
	}
	*w = (struct watch){fd, events, ready};
	return 0;
}

void loop_change(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};
	int how = !w->events ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	/* Setting an edge-triggered watch again asks for its edge again. */
	if (w->fd < 0 || (w->events == events && !(events & EPOLLET)))
		return;
	w->events = events;
	epoll_ctl(l->epfd, how, w->fd, &ev);
}

void loop_unwatch(struct loop *l, struct watch *w)
{
	if (w->fd >= 0 && w->events)
		epoll_ctl(l->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	loop_forget(l, w);
}

void loop_forget(struct loop *l, struct watch *w)
{
	w->fd = -1;
	for (int i = l->batch_at; i < l->batch_count; i++)
		if (l->batch[i].data.ptr == w)
			l->batch[i].data.ptr = NULL;
}

void loop_turn(struct loop *l, int timeout_ms)
{
	int n = epoll_wait(l->epfd, l->batch, LOOP_BATCH, timeout_ms);

	l->now_ms = clock_boot_ms();
	l->batch_count = n < 0 ? 0 : n; /* EINTR: an empty turn */
	for (l->batch_at = 0; l->batch_at < l->batch_count;) {
		struct epoll_event *ev = &l->batch[l->batch_at++];
		struct watch *w = ev->data.ptr;

		if (w)
			w->ready(w, ev->events);
	}
	l->batch_count = 0;
}
