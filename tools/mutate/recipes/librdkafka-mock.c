// SPDX-License-Identifier: GPL-2.0-only
/* A producer and two consumers of a group, against librdkafka's own mock cluster. */
#include <stdio.h>
#include <string.h>

#include "rdkafka.h"

static rd_kafka_t *client(rd_kafka_type_t type, const char *const set[][2])
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];
	rd_kafka_t *rk;

	for (unsigned i = 0; set[i][0]; i++)
		rd_kafka_conf_set(conf, set[i][0], set[i][1], why, sizeof(why));
	rk = rd_kafka_new(type, conf, why, sizeof(why));
	if (!rk)
		fprintf(stderr, "%s\n", why);
	return rk;
}

static void consume(rd_kafka_t *rk, const char *topic, unsigned many)
{
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);

	rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
	rd_kafka_subscribe(rk, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	for (unsigned got = 0, tries = 0; got < many && tries < 100; tries++) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 200);

		if (!m)
			continue;
		got += !m->err;
		if (!m->err && got % 50 == 0)
			rd_kafka_commit_message(rk, m, 1);
		rd_kafka_message_destroy(m);
	}
}

int main(void)
{
	const char *const producing[][2] = { { "test.mock.num.brokers", "3" },
					     { "enable.idempotence", "true" },
					     { NULL } };
	rd_kafka_t *producer = client(RD_KAFKA_PRODUCER, producing), *consumer[2];
	const char *const consuming[][2] = {
		{ "bootstrap.servers", "" }, { "group.id", "g" }, { "auto.offset.reset", "earliest" }, { NULL }
	};
	char servers[512] = "", value[64];
	const struct rd_kafka_metadata *md;
	const char *set[5][2];
	rd_kafka_topic_t *topic;

	if (!producer || rd_kafka_metadata(producer, 1, NULL, &md, 5000))
		return 1;
	for (int i = 0; i < md->broker_cnt; i++)
		snprintf(servers + strlen(servers), sizeof(servers) - strlen(servers), "%s%s:%d", i ? "," : "",
			 md->brokers[i].host, md->brokers[i].port);
	rd_kafka_metadata_destroy(md);
	topic = rd_kafka_topic_new(producer, "seen", NULL);
	for (int i = 0; i < 300; i++) {
		const char *to = i % 4 ? "seen" : "other";
		int n = snprintf(value, sizeof(value), "value %d", i);

		if (i % 2)
			rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, value, (size_t)n, NULL, 0,
					 NULL);
		else
			rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(to), RD_KAFKA_V_VALUE(value, (size_t)n),
					  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
		rd_kafka_poll(producer, 0);
	}
	rd_kafka_flush(producer, 10000);
	memcpy(set, consuming, sizeof(consuming));
	set[0][1] = servers;
	for (int i = 0; i < 2; i++) {
		consumer[i] = client(RD_KAFKA_CONSUMER, set);
		rd_kafka_poll_set_consumer(consumer[i]);
		consume(consumer[i], i ? "other" : "seen", i ? 75 : 225);
		rd_kafka_consumer_close(consumer[i]);
		rd_kafka_destroy(consumer[i]);
	}
	rd_kafka_topic_destroy(topic);
	rd_kafka_destroy(producer);
	return 0;
}
