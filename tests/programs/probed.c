/* SPDX-License-Identifier: GPL-2.0-only */
/* What probes are placed in: before each call it prints the arguments that a probe there must read. */
#include <stdio.h>
#include <stdlib.h>

enum kind { SMALL, LARGE };
struct inner {
	int a;
	char b[4];
	unsigned f1 : 3, f2 : 5, f3 : 9, f4 : 12;
};
struct obj {
	int refs;
	const char *name;
	struct inner in, *pin;
	long arr[4];
	char text[16];
	struct obj *next;
	enum kind kind;
	int grid[2][3];
};
struct holder {
	long pad[3];
	struct obj obj;
};

struct inner global = { .a = -7, .f1 = 5 };
static volatile long counter = 1000;
volatile int sink_number;

__attribute__((noinline)) void sink(long sum)
{
	printf("sum sum=%ld\n", sum);
	counter++;
}

static inline __attribute__((always_inline)) void obj_get(struct obj *o)
{
	sink_number = 1;
	o->refs++;
}

__attribute__((noinline)) long work(struct obj *o, int n, const char *s, unsigned char small, long long big, short sh,
				    int seven, long eight)
{
	long sum = small + sh;

	for (int i = 0; i < n; i++)
		sum += o->arr[i & 3] * (i + seven);
	sink(sum); /* the sum */
	sum += *s + big + eight;
	sink_number = n;
	return sum;
}

__attribute__((noinline)) int negative(int n)
{
	sink_number = n;
	return -n;
}

__attribute__((noinline)) void direct(struct obj *o)
{
	obj_get(o); /* direct */
	sink_number = 2;
}

__attribute__((noinline)) void inside(struct holder *h)
{
	obj_get(&h->obj); /* inside */
	sink_number = 3;
}

__attribute__((noinline)) void chased(struct obj *o)
{
	obj_get(o->next); /* chased */
	sink_number = 4;
}

/* At -O2 the count is the first instruction, with a lock prefix, on which no probe can stand. */
__attribute__((noinline)) void hold(struct obj *o)
{
	__atomic_fetch_add(&o->refs, 1, __ATOMIC_SEQ_CST);
}

static void call_work(struct obj *o, int n, const char *s)
{
	printf("work n=%d s=%s small=%d big=%lld sh=%d seven=%d eight=%ld refs=%d name=%s a=%d b=%d f2=%d f1=%d f3=%d "
	       "f4=%d "
	       "arr=%ld "
	       "text=%s far=%ld kind=%d cell=%d global=%d counter=%ld\n",
	       n, s, 200 + n, -5000000000ll * n, -n, n * 7, 8l * n, o->refs, o->name, o->in.a, o->in.b[2], o->in.f2,
	       o->pin->f1, o->in.f3, o->in.f4, o->arr[3], o->text, o->next->arr[1], o->kind, o->grid[1][2], global.a,
	       counter);
	printf("back retval=%ld\n", work(o, n, s, 200 + n, -5000000000ll * n, -n, n * 7, 8l * n));
}

static void calls(struct obj *a, struct holder *h)
{
	for (int i = 0; i < 3; i++) {
		a->refs = 10 * i;
		a->in.b[2] = (char)-i;
		a->in.f2 = 30 - i;
		a->in.f3 = 500 - i;
		a->in.f4 = 4000 + i;
		a->in.a = i - 1;
		global.a = i - 2;
		call_work(a, i + 1, i ? "later" : "first");
		printf("negative retval=%d\n", -negative(-i) * -1);
		printf("get refs=%d name=%s\n", a->refs, a->name);
		direct(a);
		printf("get refs=%d name=%s\n", h->obj.refs, h->obj.name);
		inside(h);
		printf("get refs=%d name=%s\n", a->next->refs, a->next->name);
		chased(a);
		printf("hold o=%#lx\n", (unsigned long)a);
		hold(a);
	}
}

int main(void)
{
	struct holder *h = calloc(1, sizeof(*h));
	struct obj *a = calloc(1, sizeof(*a));

	h->obj.name = "held";
	h->obj.arr[1] = 1ll << 40;
	a->name = "one";
	a->pin = &a->in;
	a->in.f1 = 6;
	a->arr[3] = -9;
	a->grid[1][2] = 77;
	a->next = &h->obj;
	a->kind = LARGE;
	snprintf(a->text, sizeof(a->text), "text");
	calls(a, h);
	return 0;
}
