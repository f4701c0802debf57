/* A race: Petrel and the bare loop of requests, each at full speed, in turn. */
import { Effect } from "effect"
import { type Ground, watchLimit, watchPetrel } from "./ground.ts"
import type { Posting } from "./programs/limit.ts"
import type { Publishing } from "./programs/publisher.ts"
import type { Figure, Row } from "./scenario.ts"

export interface Race {
  /** The case's name. */
  readonly of: string
  readonly rounds: number
  readonly publishing: Publishing
  /** Number of endpoints that get each event. */
  readonly fanOut: number
  /** Each limit's share of the deliveries, and the number of its requests in flight. */
  readonly posting: Pick<Posting, "endpoints" | "atOnce">
  /** Figures in addition to those of every race. */
  readonly more?: (petrel: Run, limit: Run) => Readonly<Record<string, number>>
}

/** One side of a round. */
export interface Run extends ReturnType<ReturnType<typeof watchPetrel>> {
  readonly deliveries: number
  readonly perSecond: number
}

const rate = { unit: "/s", digits: 0, panel: "deliveries a second" }
const cpu = { unit: "µs", digits: 0, panel: "CPU a delivery, worker and limit, µs" }

/** The figures of every race. */
export const raceFigures = {
  petrel: { title: "petrel", ...rate },
  limit: { title: "limit", ...rate, side: "limit" },
  ratio: { title: "ratio", unit: "", digits: 3, panel: "ratio to the limit" },
  workerCpu: { title: "worker CPU", ...cpu },
  limitCpu: { title: "limit CPU", ...cpu, side: "limit" },
  brokerCpu: { title: "broker CPU", ...cpu, panel: "CPU a delivery, broker, µs" }
} as const satisfies Record<string, Figure>

const runLimit = async (ground: Ground, posting: Posting): Promise<Run> => {
  const { limits, receiver } = ground
  await receiver.reset()
  const watched = watchLimit(ground)
  const count = Math.ceil(posting.count / limits.length)
  const posted = await Promise.all(limits.map((limit) => limit.post({ ...posting, count })))
  const deliveries = count * limits.length
  const seconds = Math.max(...posted.map(({ ms }) => ms)) / 1000
  return { ...watched(), deliveries, perSecond: deliveries / seconds }
}

const runPetrel = async (
  ground: Ground,
  publishing: Publishing,
  deliveries: number
): Promise<Run> => {
  const { publisher, receiver } = ground
  await receiver.reset()
  const watched = watchPetrel(ground)
  const [{ first, last }] = await Promise.all([
    receiver.received(deliveries),
    publisher.publish(publishing)
  ])
  return { ...watched(), deliveries, perSecond: (deliveries - 1) / ((last - first) / 1000) }
}

/** Runs the rounds, after one of half the length that warms up compilers and caches. */
export const race = (ground: Ground, it: Race, row: (row: Row) => void) =>
  Effect.promise(async () => {
    const { bytes, count } = it.publishing
    for (let round = 0; round <= it.rounds; round++) {
      const events = round === 0 ? Math.ceil(count / 2) : count
      const deliveries = events * it.fanOut
      const limit = await runLimit(ground, { ...it.posting, bytes, count: deliveries })
      const petrel = await runPetrel(ground, { ...it.publishing, count: events }, deliveries)
      if (round === 0) continue
      row({
        of: it.of,
        round,
        figures: {
          petrel: petrel.perSecond,
          limit: limit.perSecond,
          ratio: petrel.perSecond / limit.perSecond,
          workerCpu: (petrel.cpu.worker ?? 0) / petrel.deliveries,
          limitCpu: (limit.cpu.limit ?? 0) / limit.deliveries,
          brokerCpu: (petrel.cpu.broker ?? 0) / petrel.deliveries,
          ...it.more?.(petrel, limit)
        },
        machine: { petrel: petrel.use, limit: limit.use }
      })
    }
  })
