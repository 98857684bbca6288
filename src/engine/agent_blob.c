/* SPDX-License-Identifier: GPL-2.0-only */
/* The agent's code (agent/), as the tool carries it. */
#include "engine/agent_priv.h"

const uint8_t rt_agent_blob[] __attribute__((aligned(64))) = {
#include "agent.bytes"
};
const size_t rt_agent_blob_bytes = sizeof(rt_agent_blob);
