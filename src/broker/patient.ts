import { Effect, Stream } from "effect"
import { timers } from "../time/timers.ts"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { natsClients, registerClients } from "./clients.ts"
import { isUnanswered } from "./keep-going.ts"

/**
 * How long a reading request is repeated while it is unanswered, ms. A cluster that has lost a
 * leader elects another within some 10 s.
 */
export const maxUnansweredMs = 20_000

/** Pause before an unanswered request is repeated, ms. */
const askAgainMs = 500

/**
 * Returns the broker at hand with requests that wait while a cluster elects its leaders: one that
 * only reads is repeated until it is answered, for up to `maxUnansweredMs`. Requests that write are
 * left alone, as one that was not answered may have been carried out. Logs once that it waits.
 */
export const patientBroker = Effect.gen(function* () {
  const broker = yield* Broker
  const { bucket, connection, js, jsm, publisher, wire } = yield* natsClients
  let hasSaid = false
  const say = ({ message }: BrokerError) =>
    Effect.suspend(() => {
      if (hasSaid) return Effect.void
      hasSaid = true
      const upTo = `${maxUnansweredMs / 1_000} s`
      return Effect.logWarning(
        `the broker does not answer, as while a cluster elects its leaders; waiting for up to ${upTo}`,
        { why: message }
      )
    })
  const mayWait = (error: BrokerError, since: number) =>
    isUnanswered(error) && timers.monotonicMs() - since < maxUnansweredMs
  const beforeAgain = (error: BrokerError) => Effect.andThen(say(error), Effect.sleep(askAgainMs))
  const patiently = <A, R>(request: Effect.Effect<A, BrokerError, R>) =>
    Effect.suspend(() => {
      const since = timers.monotonicMs()
      const untilAnswered: typeof request = Effect.catch(request, (error) =>
        mayWait(error, since)
          ? Effect.andThen(beforeAgain(error), untilAnswered)
          : Effect.fail(error)
      )
      return untilAnswered
    })
  const patient = Broker.of({
    ...broker,
    readMessage: (operation, stream, query) =>
      patiently(broker.readMessage(operation, stream, query)),
    batch: (stream, subject, from, limits) =>
      patiently(broker.batch(stream, subject, from, limits)),
    read: (range, fromSeq) =>
      Stream.suspend(() => {
        const since = timers.monotonicMs()
        // What has begun to arrive must not arrive twice.
        let hasBegun = false
        const untilAnswered: ReturnType<typeof broker.read> = broker.read(range, fromSeq).pipe(
          Stream.mapArray((messages) => {
            hasBegun = true
            return messages
          }),
          Stream.catch((error) =>
            !hasBegun && mayWait(error, since)
              ? Stream.unwrap(Effect.as(beforeAgain(error), untilAnswered))
              : Stream.fail(error)
          )
        )
        return untilAnswered
      }),
    // These two fail only before they pass a message on.
    see: (range, fromSeq, see) => patiently(broker.see(range, fromSeq, see)),
    readRun: (options, see) => patiently(broker.readRun(options, see)),
    firstSince: (stream, time) => patiently(broker.firstSince(stream, time)),
    countSince: (stream, since, subject) => patiently(broker.countSince(stream, since, subject)),
    entry: (name, key) => patiently(broker.entry(name, key)),
    watch: (name) => patiently(broker.watch(name)),
    streamInfo: (operation, stream, options) =>
      patiently(broker.streamInfo(operation, stream, options)),
    streamNames: (operation, subject) => patiently(broker.streamNames(operation, subject)),
    listStreams: (operation) => patiently(broker.listStreams(operation)),
    consumerInfo: (operation, stream, consumer) =>
      patiently(broker.consumerInfo(operation, stream, consumer))
  })
  registerClients(patient, { bucket, connection, js, jsm, publisher, wire })
  return patient
})
