import { parentPort, workerData } from "node:worker_threads"
import { Effect, Fiber } from "effect"
import { connectTo } from "../broker/connection.ts"
import { followHistory } from "./follow-history.ts"
import type { FromWriter, ToWriter, WriterData } from "./thread-messages.ts"

/*
 * The thread of a projection's writer: it reads the history with a connection of its own, so that the
 * console's event loop has no part in it.
 */

const { broker, store }: WriterData = workerData
const tell = (message: FromWriter) => parentPort?.postMessage(message)
let wanted: "rebuild" | "remake" | undefined

const following = Effect.runFork(
  followHistory(store, {
    report: (report) => tell({ tells: "report", report }),
    warn: (sentence) => tell({ tells: "warning", sentence }),
    wanted: () => {
      const now = wanted
      wanted = undefined
      return now
    }
  }).pipe(Effect.provide(connectTo({ ...broker, clientName: "petrel projection" })))
)

following.addObserver(() => parentPort?.close())

parentPort?.on("message", (message: ToWriter) => {
  if (message.do === "stop") Effect.runFork(Fiber.interrupt(following))
  else wanted = message.do
})
