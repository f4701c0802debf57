import { Effect } from "effect"
import { endpointCap, prepare, workerRoom } from "../ground.ts"
import { startReceiver } from "../processes.ts"
import { race, raceFigures } from "../race.ts"
import { addEndpoints } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const widths = [10, 1_000]
const bytes = 1024

/** Events of 1 KB, each for all endpoints of its type. */
export const fanOut: Scenario = {
  name: "fan-out",
  measures:
    "Deliveries per second of one worker when each event goes to 10 endpoints, and to 1,000.",
  limit: "The limit is a loop that signs and POSTs as many requests and does nothing else.",
  figures: raceFigures,
  run: Effect.fnUntraced(function* ({ quick, rounds = quick ? 1 : 5 }, row) {
    const deliveries = quick ? 6_000 : 40_000
    const all = widths.flatMap((width) =>
      Array.from({ length: width }, (_, number) => ({ width, number }))
    )
    const receiver = yield* startReceiver()
    const ground = yield* prepare(
      receiver,
      addEndpoints(all.length, (index) => {
        const { number, width } = all[index] ?? { number: 0, width: 0 }
        const id = `e${number}of${width}`
        return { id, url: `${receiver.url}/${number}`, types: [`to${width}`] }
      })
    )
    for (const width of widths)
      yield* race(
        ground,
        {
          of: `to ${width.toLocaleString("en")} endpoints`,
          rounds,
          publishing: {
            ...{ subject: `events.bench.to${width}`, subjects: 1 },
            ...{ count: deliveries / width, bytes }
          },
          fanOut: width,
          posting: { endpoints: width, atOnce: Math.min(width * endpointCap, workerRoom) }
        },
        row
      )
    return { settings: { deliveries, bytes, rounds, workers: 1 } }
  })
}
