/* SPDX-License-Identifier: GPL-2.0-only */
/* Force-included everywhere in src/: these calls hide overruns, lost errors or shells. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atoll strtol system popen tmpnam mktemp
