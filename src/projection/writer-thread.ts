import { parentPort, workerData } from "node:worker_threads"
import { Cause, Effect, Exit, Fiber, Schedule } from "effect"
import { connectTo } from "../broker/connection.ts"
import { followHistory } from "./follow-history.ts"
import type { FromWriter, ToWriter, WriterData } from "./thread-messages.ts"
import { loggingFromThread } from "./thread-messages.ts"

/*
 * The thread of a projection's writer: it reads the history with a connection of its own, so that the
 * console's event loop has no part in it.
 */

const { broker, store }: WriterData = workerData
const tell = (message: FromWriter) => parentPort?.postMessage(message)
const warn = (sentence: string) => tell({ tells: "line", level: "Warn", parts: [sentence] })
let wanted: "rebuild" | "remake" | undefined

const following = Effect.runFork(
  followHistory(store, {
    report: (report) => tell({ tells: "report", report }),
    warn,
    wanted: () => {
      const now = wanted
      wanted = undefined
      return now
    }
  }).pipe(
    // Nobody waits for its connection to end: the broker may be gone.
    Effect.ensuring(Effect.sync(() => tell({ tells: "stopped" }))),
    Effect.provide(connectTo({ ...broker, clientName: "petrel projection" })),
    Effect.tapError(({ message }) => Effect.sync(() => warn(`the delivery log waits: ${message}`))),
    Effect.retry(Schedule.spaced("5 seconds")),
    Effect.provide(loggingFromThread(tell))
  )
)

following.addObserver((exit) => {
  if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) warn(Cause.pretty(exit.cause))
  parentPort?.close()
})

parentPort?.on("message", (message: ToWriter) => {
  if (message.do === "stop") Effect.runFork(Fiber.interrupt(following))
  else wanted = message.do
})
