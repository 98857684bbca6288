/* SPDX-License-Identifier: GPL-2.0-only */
#include "test.h"

TEST(opens)
{
}

TEST_MAIN();
