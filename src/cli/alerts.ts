import type { Msg } from "@nats-io/transport-node"
import { Effect, Option, Stream } from "effect"
import { Command } from "effect/cli"
import { Broker, BrokerError } from "../broker/connection.ts"
import { streamNotFound } from "../broker/installed.ts"
import { parseFact } from "../history/read.ts"
import { list } from "./alerts-list.ts"
import { thresholds } from "./alerts-thresholds.ts"
import { reportFact } from "./history.ts"
import { connected, petrel } from "./root-command.ts"
import { tenantFlag } from "./selection.ts"
import { untilStopped } from "./signals.ts"
import { remark } from "./terminal.ts"

/**
 * The failures that the broker republishes. Failures while no command listens are only in the
 * history.
 */
const failures = (tenant: string | undefined) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { ask, connection, jsm, names } = yield* Broker
      // A user who may only subscribe may not query JetStream. Any answer except "stream not found"
      // is accepted.
      yield* ask(`read ${names.history}`, () => jsm.streams.info(names.history)).pipe(
        Effect.catchIf(
          ({ code }) => code !== streamNotFound,
          () => Effect.void
        )
      )
      const subject = names.subjects.failures(tenant ?? "*", "*", "*")
      const subscription = yield* Effect.acquireRelease(
        Effect.sync(() => connection.subscribe(subject)),
        (subscription) => Effect.sync(() => subscription.unsubscribe())
      )
      yield* ask(`subscribe to ${subject}`, () => connection.flush())
      const { json } = yield* petrel
      if (!json) yield* remark(`Listening on ${subject} for failures; Ctrl-C ends it.`)
      return Stream.fromAsyncIterable(
        subscription,
        (cause) => new BrokerError({ operation: `subscribe to ${subject}`, cause })
      )
    })
  )

const reportFailure = (message: Msg) =>
  Option.match(parseFact(message.string(), Number(message.headers?.get("Nats-Sequence"))), {
    onNone: () => Effect.logWarning("an alert is no fact", { subject: message.subject }),
    onSome: reportFact
  })

/** Shows the failure subjects as they are published. */
export const alerts = Command.make("alerts", { tenant: tenantFlag }, ({ tenant }) =>
  failures(tenant).pipe(Stream.runForEach(reportFailure), Effect.provide(connected), untilStopped)
).pipe(
  Command.withDescription("Show failures as they happen, until it is stopped"),
  Command.withShortDescription("Show failures as they happen, and which alerts are raised"),
  Command.withSubcommands([list, thresholds])
)
