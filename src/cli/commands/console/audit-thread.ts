import { parentPort, workerData } from "node:worker_threads"
import { Cause, Effect, Exit, Fiber, Layer, Logger, Schedule } from "effect"
import { connectTo } from "../../../broker/connection.ts"
import { Facts } from "../../../history/facts.ts"
import { standingAudit } from "../../../operations/audit/standing-audit.ts"
import { collectGarbage } from "../../../projection/lasting-thread.ts"
import type { AuditData, FromAudit, ToAudit } from "./audit.ts"

/*
 * The thread of a console's audit: it reads events and facts with a connection of its own, so that
 * the console's event loop has no part in it.
 */

const { broker, ...options }: AuditData = workerData
const tell = (message: FromAudit) => parentPort?.postMessage(message)
const warn = (sentence: string, why: string) =>
  tell({ tells: "saying", saying: { level: "warning", sentence, details: { why } } })

/** False once it has given back what reading days of events and facts took. */
let isFresh = true

const connection = connectTo({ ...broker, clientName: "petrel audit" })

const auditing = Effect.runFork(
  standingAudit(options, (saying) => {
    tell({ tells: "saying", saying })
    // What it says first comes after it has read days of events and facts. It may say a lot: a word
    // for each event that is missing.
    if (isFresh) collectGarbage()
    isFresh = false
  }).pipe(
    // Nobody waits for its connection to end: the broker may be gone.
    Effect.ensuring(Effect.sync(() => tell({ tells: "stopped" }))),
    Effect.provide(Layer.provideMerge(Facts.layer, connection)),
    Effect.tapError(({ message }) => Effect.sync(() => warn("the audit waits", message))),
    Effect.retry(Schedule.spaced("5 seconds")),
    // What it says goes to the console; the connection's state the console logs itself.
    Effect.provide(Logger.layer([]))
  )
)

auditing.addObserver((exit) => {
  if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause))
    warn("the audit has ended", Cause.pretty(exit.cause))
  parentPort?.close()
})

parentPort?.on("message", (message: ToAudit) => {
  if (message.do === "stop") Effect.runFork(Fiber.interrupt(auditing))
})
