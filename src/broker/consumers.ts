import type { ConsumerConfig } from "@nats-io/jetstream"
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Effect } from "effect"
import type { Names } from "../domain/names.ts"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { consumerNotFound, ifFound } from "./broker-error.ts"

/** Without a leader the broker does not answer, and pulling must not wait for that, ms. */
const answerWithinMs = 2_000

/** The configuration of a durable consumer. */
export type WantedConsumer = Partial<ConsumerConfig> & { readonly durable_name: string }

/**
 * Limit of unacknowledged messages, delayed NAKs included: far above the number that a worker
 * leaves waiting.
 */
const maxAckPending = 65_536

/** Fields that stay unset: with any of them a consumer hands out less, later or only headers, or is removed. */
export const unset = {
  headers_only: false,
  max_batch: 0,
  max_bytes: 0,
  max_expires: 0,
  inactive_threshold: 0,
  backoff: []
} satisfies Partial<ConsumerConfig>

/** Copies as its stream has, and no limit. */
const withoutLimits = { ...unset, max_deliver: -1, num_replicas: 0 } as const

/** The consumer of the event stream that all routers share. @param ackWait ms */
export const routerConsumer = (names: Names, ackWait: number): WantedConsumer => ({
  ...withoutLimits,
  durable_name: names.routerConsumer,
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(ackWait),
  // Covers events whose deliveries are in flight, on all workers.
  max_ack_pending: maxAckPending
})

/** The consumer of a partition's queue. @param ackWait ms */
export const deliverConsumer = (names: Names, index: number, ackWait: number): WantedConsumer => ({
  ...withoutLimits,
  durable_name: names.deliverConsumer,
  // Schedules have subjects of their own, which no consumer may receive.
  filter_subject: names.subjects.deliveriesOf(index),
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(ackWait),
  max_ack_pending: maxAckPending
})

/** Where a new consumer begins: after a sequence, 0 for the first message. */
export const startAfter = (seq: number): Partial<ConsumerConfig> =>
  seq === 0 ? {} : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: seq + 1 }

/**
 * Makes a consumer again that somebody removed: without it nothing leaves its stream. Logs that it
 * was made. A failure is none of its own: as while the broker elects a leader, who pulls has said
 * that no messages come, and asks again.
 *
 * @param position after which sequence the new one begins.
 */
export const remakeConsumer = Effect.fnUntraced(
  function* (
    stream: string,
    consumer: WantedConsumer,
    position: Effect.Effect<number, BrokerError, Broker>
  ) {
    const { consumerInfo, makeConsumer } = yield* Broker
    const name = consumer.durable_name
    const look = consumerInfo(`look at the consumer of ${stream}`, stream, name)
    if ((yield* ifFound(look, consumerNotFound)) !== undefined) return
    const after = yield* position
    yield* makeConsumer(`make the consumer of ${stream}`, stream, {
      ...consumer,
      ...startAfter(after)
    })
    yield* Effect.logWarning(`made the consumer ${name} of ${stream} again, which was gone`, {
      after
    })
  },
  Effect.timeout(answerWithinMs),
  Effect.catch(({ message }) =>
    Effect.logDebug("cannot make a consumer again; trying again", { why: message })
  )
)
