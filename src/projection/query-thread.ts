import { parentPort, workerData } from "node:worker_threads"
import { Invalid } from "../domain/problem.ts"
import { isBroken, problemOf } from "./file-problems.ts"
import { LogReader, NoFiles } from "./log-reader.ts"
import type { FromQuery, QueryData, ToQuery } from "./thread-messages.ts"

/* The thread that answers queries: it waits for the disk instead of the console's event loop. */

const { directory }: QueryData = workerData
const reader = new LogReader(directory)

const answerTo = (asked: ToQuery): FromQuery["result"] => {
  switch (asked.ask) {
    case "find":
      return { page: reader.find(asked.query) }
    case "attempts":
      return { attempts: reader.findAttempts(asked.query) }
    case "events":
      return { events: reader.findEvents(asked.query) }
    case "get":
      return { rounds: reader.get(asked.lookup) }
    case "sums":
      return { sums: reader.sums(asked.query) }
  }
}

const answer = (asked: ToQuery): FromQuery["result"] => {
  try {
    return answerTo(asked)
  } catch (error) {
    const [problem] = error instanceof Invalid ? error.problems : []
    if (problem !== undefined) return { problem }
    // The files may have been made anew.
    reader.close()
    if (error instanceof NoFiles) return { unavailable: error.message, files: "missing" }
    const unavailable = problemOf(error, directory)
    return isBroken(error) ? { unavailable, files: "damaged" } : { unavailable }
  }
}

parentPort?.on("message", (asked: ToQuery) => {
  parentPort?.postMessage({ id: asked.id, result: answer(asked) } satisfies FromQuery)
})
