import { Effect, Schema } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { watch } from "../machine.ts"
import {
  memoryOf,
  runPetrelCommand,
  startAttackers,
  startConsole,
  startNeighbour,
  startReceiver,
  startWorker
} from "../processes.ts"
import { addEndpoints, startBroker } from "../rig.ts"
import type { Scenario } from "../scenario.ts"

const bytes = 1024
const perSecond = 50
const attackers = ["mallory", "eve", "trudy", "oscar"]
const fifth = "bench"
/** How long the fifth is alone, and the control lasts at most, s: with 60 s each a run is too long. */
const comparedSeconds = 20
/** How long after the attack has begun the neighbour's events count, ms. */
const settleMs = 3_000

const Made = Schema.fromJsonString(Schema.Struct({ token: Schema.String }))

const makeToken = Effect.fnUntraced(function* (nats: string, tenant: string) {
  const made = yield* runPetrelCommand([
    ...["token", "create", tenant, "--scope", "all", "--json"],
    ...["--nats", nats]
  ])
  return Schema.decodeUnknownSync(Made)(made.printed).token
})

/** A broker, a worker and a console, with four tenants that can attack it. */
const install = Effect.gen(function* () {
  const broker = yield* startBroker()
  const worker = yield* startWorker(broker.url)
  const console = yield* startConsole(broker.url)
  const tokens = yield* Effect.forEach(attackers, (tenant) =>
    Effect.map(makeToken(broker.url, tenant), (token) => ({ tenant, token }))
  )
  const attack = yield* startAttackers(console.address, broker.url)
  return { attack, broker, console, tokens, worker }
})

/** Four tenants attack a console with everything at once, a fifth publishes and receives. */
export const tenants: Scenario = {
  name: "tenants",
  measures: "What four tenants that attack one console with everything do to a fifth.",
  limit:
    "Its measure is the fifth alone, on the same console before. The control is the fifth alone while the same attack goes to another installation on the same machine: what is left of the ratio is not the machine's.",
  sides: { petrel: "attacked", limit: "alone" },
  onlyNamed: true,
  figures: {
    p50: { title: "p50", unit: "ms", digits: 1, panel: "latency" },
    p99: { title: "p99", unit: "ms", digits: 1, panel: "latency" },
    aloneP50: { title: "alone, p50", unit: "ms", digits: 1, panel: "latency", side: "limit" },
    aloneP99: { title: "alone, p99", unit: "ms", digits: 1, panel: "latency", side: "limit" },
    controlP50: { title: "control, p50", unit: "ms", digits: 1, panel: "latency", side: "limit" },
    controlP99: { title: "control, p99", unit: "ms", digits: 1, panel: "latency", side: "limit" },
    ratio: { title: "p99, ratio to alone", unit: "", digits: 2 },
    controlRatio: { title: "p99, ratio to control", unit: "", digits: 2 },
    refused: { title: "refused", unit: "", digits: 0 },
    undelivered: { title: "not delivered", unit: "", digits: 0 },
    memory: { title: "console memory, most", unit: "MiB", digits: 0 }
  },
  run: Effect.fnUntraced(function* ({ quick, rounds = 1 }, row) {
    const seconds = quick ? 15 : 60
    const { broker, console, worker, ...here } = yield* install
    const elsewhere = yield* install
    const receiver = yield* startReceiver()
    const own = addEndpoints(1, () => ({
      ...{ tenant: fifth, id: "own", url: receiver.url, types: ["fifth.>"] }
    }))
    yield* Effect.provide(own, connectTo(broker))
    const token = yield* makeToken(broker.url, fifth)
    const neighbour = yield* startNeighbour(console.address, token, fifth)
    const pids = {
      ...{ console: [console.pid], worker: [worker.pid], broker: [broker.pid] },
      ...{ neighbour: [neighbour.pid], attackers: [here.attack.pid] }
    }
    const publishing = (ms: number) =>
      Effect.promise(async () => {
        const count = Math.round((ms / 1_000) * perSecond)
        await receiver.reset()
        const done = await neighbour.publish({ count, perSecond, bytes })
        // What is late counts as not delivered.
        await new Promise((resolve) => setTimeout(resolve, 5_000))
        const { latency, requests } = await receiver.count()
        return { ...done, latency, undelivered: Math.max(0, done.stored - requests) }
      })
    const during = (
      { attack, tokens }: Pick<typeof elsewhere, "attack" | "tokens">,
      forSeconds: number
    ) =>
      Effect.all(
        [
          Effect.delay(publishing(forSeconds * 1_000 - settleMs), settleMs),
          Effect.promise(() => attack.attack({ tenants: tokens, ms: forSeconds * 1_000 }))
        ],
        { concurrency: 2 }
      )
    yield* publishing(5_000)
    const notes: Array<string> = []
    for (let round = 1; round <= rounds; round++) {
      const watchedAlone = watch(pids)
      const alone = yield* publishing(Math.min(seconds, comparedSeconds) * 1_000)
      const aloneUse = watchedAlone().use
      const [control] = yield* during(elsewhere, Math.min(seconds, comparedSeconds))
      let memory = 0
      const watchedAttack = watch(pids)
      const [attacked, { answers }] = yield* during(here, seconds).pipe(
        Effect.raceFirst(
          Effect.forever(
            Effect.delay(
              Effect.sync(() => {
                memory = Math.max(memory, memoryOf(console.pid))
              }),
              "200 millis"
            )
          )
        )
      )
      const { use } = watchedAttack()
      row({
        of: "attacked",
        round,
        figures: {
          ...{ p50: attacked.latency.p50, p99: attacked.latency.p99 },
          ...{ aloneP50: alone.latency.p50, aloneP99: alone.latency.p99 },
          ...{ controlP50: control.latency.p50, controlP99: control.latency.p99 },
          controlRatio: attacked.latency.p99 / control.latency.p99,
          ratio: attacked.latency.p99 / alone.latency.p99,
          refused: Object.values(attacked.refused).reduce((sum, count) => sum + count, 0),
          undelivered: attacked.undelivered,
          memory
        },
        machine: { petrel: use, limit: aloneUse }
      })
      for (const [what, count] of Object.entries(attacked.refused).slice(0, 5))
        notes.push(`refused ${count} times: ${what}`)
      for (const [name, counts] of Object.entries(answers))
        notes.push(`${name}: ${JSON.stringify(counts)}`)
    }
    return {
      settings: { perSecond, bytes, seconds, attackers: attackers.length, rounds },
      notes,
      aims: [
        { of: "attacked", figure: "refused", atMost: 0 },
        { of: "attacked", figure: "undelivered", atMost: 0 },
        { of: "attacked", figure: "ratio", atMost: 2 },
        { of: "attacked", figure: "controlRatio", atMost: 2 },
        { of: "attacked", figure: "memory", atMost: 400 }
      ]
    }
  })
}
