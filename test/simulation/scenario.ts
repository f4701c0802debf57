import { readFileSync } from "node:fs"
import type { Action, Plan } from "./actions.ts"
import { actionsOf, planOf } from "./actions.ts"
import type { Result } from "./simulation.ts"
import { Simulation } from "./simulation.ts"

/** A failure as a file of explicit actions: seeds change their meaning with the code. */
export interface Scenario {
  readonly seed: number
  readonly plan: Plan
  readonly actions: ReadonlyArray<Action>
  /** What fails, and with which defect. */
  readonly fails?: string
  readonly sabotage?: string | undefined
  /** What the engine does as it did formerly (apply-sabotage.ts), where that shows the failure. */
  readonly formerly?: ReadonlyArray<string>
  /** Whether a few events fill the router's window, as with --crowded. (Default: false) */
  readonly crowded?: boolean
  /** Whether events pass by a bypass, as with --bypass. (Default: false) */
  readonly bypass?: boolean
}

/** Runs a seed, or explicit actions. */
export const runOne = (
  seed: number,
  scenario: Partial<Scenario> = {},
  keepsLog = false
): Promise<Result> => {
  const plan = scenario.plan ?? planOf(seed)
  const actions = scenario.actions ?? actionsOf(seed, plan)
  const run = () => new Simulation(scenario.seed ?? seed, plan, keepsLog).run(actions)
  // Microtasks can be run at will in a macrotask only, and not after an `await`.
  return new Promise((resolve, reject) =>
    setImmediate(() => {
      try {
        resolve(run())
      } catch (error) {
        reject(error)
      }
    })
  )
}

export const readScenario = (file: string | URL): Scenario => JSON.parse(readFileSync(file, "utf8"))
