import type { StreamInfoRequestOptions } from "@nats-io/jetstream"
import { Effect } from "effect"
import { timers } from "../time/timers.ts"
import type { Broker } from "./broker.ts"
import { ask, isNoSuchMessage } from "./broker-error.ts"
import type { Clients } from "./clients.ts"
import { readRun } from "./nats-bulk-read.ts"
import { countSince, firstSince, readBatch, readOrdered, seeOrdered } from "./nats-reads.ts"
import { pullWith } from "./pull.ts"

/** The subject on which each server tells a client who it is, whatever its account. */
const userInfo = "$SYS.REQ.USER.INFO"
/** Time-out of that question, ms. */
const answerWithinMs = 5_000

/** Returns the broker's operations, carried out by the NATS clients. */
export const operationsOf = (
  clients: Clients,
  onReconnect: Broker["Service"]["onReconnect"]
): Omit<Broker["Service"], "names" | "oneOfFew"> => {
  const { bucket, connection, js, jsm, publisher, wire } = clients
  const { outbound } = publisher
  return {
    publish: (subject, body, headers, life) => publisher.publish(subject, body, headers, life),
    send: (subject, body, headers, settle) => publisher.send(subject, body, headers, settle),
    life: () => outbound.life,
    unanswered: () => publisher.unanswered.streams(timers.monotonicMs()),
    largestMessage: () => outbound.largest,
    pull: (options) => pullWith(wire, outbound, onReconnect, options),
    readMessage: (operation, stream, query) =>
      Effect.catchIf(
        ask(operation, () => jsm.streams.getMessage(stream, query)),
        isNoSuchMessage,
        () => Effect.succeed(null)
      ),
    batch: (stream, subject, seq, limits) => readBatch(jsm, stream, subject, seq, limits),
    read: (range, fromSeq) => readOrdered(js, range, fromSeq),
    see: (range, fromSeq, see) => seeOrdered(js, range, fromSeq, see),
    readRun: (options, see) => readRun(clients, options, see),
    firstSince: (stream, time) => firstSince(js, stream, time),
    countSince: (stream, since, subject) => countSince(jsm, stream, since, subject),
    entry: (name, key) =>
      Effect.flatMap(bucket(name), (kv) => ask(`read ${key}`, () => kv.get(key))),
    watch: (name) =>
      Effect.flatMap(bucket(name), (kv) =>
        Effect.acquireRelease(
          ask(`watch ${name}`, () => kv.watch()),
          (entries) => Effect.sync(() => entries.stop())
        )
      ),
    streamInfo: (operation, stream, options) =>
      ask(operation, () =>
        jsm.streams.info(stream, options as Partial<StreamInfoRequestOptions> | undefined)
      ),
    streamNames: (operation, subject) =>
      ask(operation, async () => {
        const names: Array<string> = []
        for await (const name of jsm.streams.names(subject)) names.push(name)
        return names
      }),
    consumerInfo: (operation, stream, consumer) =>
      ask(operation, () => jsm.consumers.info(stream, consumer)),
    makeConsumer: (operation, stream, config) =>
      ask(operation, () => jsm.consumers.add(stream, config)),
    deleteMessage: (operation, stream, seq) =>
      Effect.catchIf(
        ask(operation, () => jsm.streams.deleteMessage(stream, seq, false)),
        isNoSuchMessage,
        () => Effect.succeed(false)
      ),
    purge: (operation, stream, options) => ask(operation, () => jsm.streams.purge(stream, options)),
    say: (subject, body, reply) => {
      if (connection.isClosed()) return
      connection.publish(subject, body, reply === undefined ? undefined : { reply })
    },
    listen: (subject, receive) => wire.subscribe(subject, receive),
    inbox: () => wire.inbox(),
    flush: ask("flush", () => connection.flush()),
    server: () => connection.info ?? {},
    userInfo: ask("ask as whom the broker knows us", async () =>
      (await connection.request(userInfo, "", { timeout: answerWithinMs })).string()
    ),
    onReconnect,
    closed: Effect.promise(() => connection.closed()),
    isClosed: () => connection.isClosed()
  }
}
