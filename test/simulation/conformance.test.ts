import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Exit, Scheduler } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { wanted } from "../../src/broker/topology.ts"
import type { Names } from "../../src/domain/names.ts"
import { clock } from "../../src/time/timers.ts"
import { onServer } from "../kit/scenario.ts"
import type { Operation } from "./conformance.ts"
import { conformanceTopology, operations, outcomesOf } from "./conformance.ts"
import { SimConnection } from "./connection.ts"
import { ModelServer } from "./server.ts"
import type { ConsumerSettings } from "./server-consumer.ts"
import type { ModelConfig } from "./server-stream.ts"
import { SimProcess, World } from "./world.ts"

const { scenario } = onServer()

/** `npm run test:long` compares longer histories. */
const isLong = process.env.PETREL_TEST_LONG !== undefined
const seeds = Array.from({ length: isLong ? 40 : 3 }, (_, index) => index + 1)
const operationsPerSeed = isLong ? 600 : 200

/** Carries operations out on the model. */
const onModel = (seed: number, names: Names, all: ReadonlyArray<Operation>) => {
  const world = new World(seed)
  const server = new ModelServer(world)
  for (const { consumer, stream } of wanted(names, conformanceTopology, 1024 * 1024)) {
    server.addStream(stream as ModelConfig)
    if (consumer !== undefined) server.addConsumer(stream.name, consumer as ConsumerSettings)
  }
  const process = new SimProcess(world, "client")
  const { broker } = new SimConnection(server, process, names)
  const { scheduler } = process
  const program = outcomesOf(all, new Map()).pipe(
    Effect.provideService(Broker, broker),
    Effect.provideService(Clock.Clock, clock),
    Effect.provideService(Scheduler.Scheduler, scheduler)
  )
  let outcomes: ReadonlyArray<string> = []
  let isDone = false
  const begin = () =>
    Effect.runFork(program, { scheduler }).addObserver((exit) => {
      isDone = true
      if (Exit.isSuccess(exit)) outcomes = exit.value
    })
  world.after(0, begin, process)
  world.runUntil(world.now + 3_600_000, () => isDone)
  return outcomes
}

describe("the model of nats-server", () => {
  for (const seed of seeds)
    scenario(
      `does as the real one, seed ${seed}`,
      () =>
        Effect.gen(function* () {
          const { names } = yield* Broker
          const all = operations(seed, operationsPerSeed, names)
          const real = yield* outcomesOf(all, new Map())
          // In a macrotask: the world runs microtasks by itself.
          const model = yield* Effect.callback<ReadonlyArray<string>>((resume) => {
            setImmediate(() => resume(Effect.succeed(onModel(seed, names, all))))
          })
          assert.lengthOf(model, all.length)
          const differences = all.flatMap(({ what }, n) =>
            real[n] === model[n] ? [] : [`#${n} ${what}: real ${real[n]}, model ${model[n]}`]
          )
          assert.deepStrictEqual(differences, [])
        }),
      conformanceTopology
    )
})
