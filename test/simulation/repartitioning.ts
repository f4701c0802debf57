/* A change of the number of partitions: workers are stopped, the command is run, perhaps killed and
   run again, and workers start again. */
import { Cause, Effect, Exit } from "effect"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import { Facts } from "../../src/history/facts.ts"
import { repartition } from "../../src/operations/repartition/repartition.ts"
import type { Simulation } from "./simulation.ts"

/** Pause until the command is run again, ms. */
const againMs = 1_000

export class Repartitioning {
  readonly #sim: Simulation
  #attempts = 0
  isUnderWay = false

  constructor(sim: Simulation) {
    this.#sim = sim
  }

  /** @param dies where the first run of the command dies. */
  begin(to: number, dies: FailpointName | undefined): void {
    const { server, workers } = this.#sim
    if (this.isUnderWay) return
    this.isUnderWay = true
    server.count("repartition")
    for (const worker of workers) if (worker !== undefined) this.#sim.roll(worker, 0)
    this.#run(to, dies)
  }

  #run(to: number, dies: FailpointName | undefined): void {
    const sim = this.#sim
    const { oracle, server, world } = sim
    const connection = sim.connect(`repartition.${this.#attempts++}`)
    const { process } = connection
    const command = repartition({ to, tell: () => Effect.void }).pipe(Effect.provide(Facts.layer))
    const again = (next: FailpointName | undefined) => {
      sim.disconnect(connection)
      world.after(againMs, () => this.#run(to, next), world.outside)
    }
    sim.fork(
      connection,
      command,
      (exit) => {
        if (!process.isAlive) return
        if (Exit.isSuccess(exit)) {
          world.trace(`there are ${to} partitions`)
          sim.disconnect(connection)
          sim.partitions = to
          this.isUnderWay = false
          return
        }
        const why = Cause.pretty(exit.cause)
        // Without the ids of this process.
        world.trace(`repartition: ${why.slice(0, 50)}`)
        if (Cause.hasDies(exit.cause)) oracle.fail("defect", `repartition: ${why}`)
        again(dies)
      },
      (step) => {
        if (step !== dies || !process.isAlive) return
        server.count(`crash at ${step}`)
        world.trace(`${process.name} dies at ${step}`)
        again(undefined)
      }
    )
  }
}
