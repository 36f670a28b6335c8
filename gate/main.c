#include <stdio.h>

int main(void)
{
	puts("sallyport " SALLYPORT_VERSION);
	return 0;
}
