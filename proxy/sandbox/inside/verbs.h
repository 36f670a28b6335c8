/*
 * verbs.h - what the program does; each takes the words after its verb and returns what main()
 * returns.
 */
#ifndef PROXY_SANDBOX_INSIDE_VERBS_H
#define PROXY_SANDBOX_INSIDE_VERBS_H

#include <stdbool.h>

int verb_idle(char **words);
int verb_run(char **words);
int verb_connect(char **words);
int verb_get(char **words);
int verb_put(char **words);
int verb_list(char **words);
int verb_stat(char **words);
int verb_remove(char **words);
int verb_mkdir(char **words);
int verb_tar(char **words);
int verb_untar(char **words);

/* A whole number from 0 to most in text.  0, or -1. */
int number_read(const char *text, int base, long long most, long long *ret);

#endif
