import type { Msg } from "@nats-io/transport-node"
import { Effect, Option, Queue, Stream } from "effect"
import { Command } from "effect/cli"
import { Broker } from "../../../broker/broker.ts"
import { streamNotFound } from "../../../broker/broker-error.ts"
import { parseFact } from "../../../history/read.ts"
import { tenantFlag } from "../../flags/shared.ts"
import { connected, petrel } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { remark } from "../../terminal/terminal.ts"
import { reportFact } from "../history/history.ts"
import { list } from "./list.ts"
import { test } from "./test.ts"
import { thresholds } from "./thresholds.ts"

/**
 * The failures that the broker republishes. Failures while no command listens are only in the
 * history.
 */
const failures = (tenant: string | undefined) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { flush, listen, names, streamInfo } = yield* Broker
      // A user who may only subscribe may not query JetStream. Any answer except "stream not found"
      // is accepted.
      yield* streamInfo(`read ${names.history}`, names.history).pipe(
        Effect.catchIf(
          ({ code }) => code !== streamNotFound,
          () => Effect.void
        )
      )
      const subject = names.subjects.failures(tenant ?? "*", "*", "*")
      const heard = yield* Queue.unbounded<Msg>()
      yield* Effect.acquireRelease(
        Effect.sync(() => listen(subject, (message) => Queue.offerUnsafe(heard, message))),
        (unlisten) => Effect.sync(unlisten)
      )
      yield* flush
      const { json } = yield* petrel
      if (!json) yield* remark(`Listening on ${subject} for failures; Ctrl-C ends it.`)
      return Stream.fromQueue(heard)
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
  Command.withSubcommands([list, test, thresholds])
)
