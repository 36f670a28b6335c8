#include "proxy/sandbox/openapi.h"

#include "proxy/sandbox/sandbox_priv.h"

void openapi_handle(struct call *c)
{
	httpd_reply(c->r, 200, "application/json",
		    (struct span){openapi_files[0].text, openapi_files[0].length});
}
