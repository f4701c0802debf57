import type { Action, Plan } from "./actions.ts"
import { actionsOf, planOf } from "./actions.ts"
import type { Scenario } from "./scenario.ts"
import { runOne } from "./scenario.ts"

/**
 * Leaves out actions that the first failure of a seed does not need, half of them, a quarter, and so
 * on, then faults of the plan. What draws has generators of its own, so the rest stays as it was.
 * Returns undefined for a seed that does not fail.
 */
export const shrink = async (
  seed: number,
  scenario: Partial<Scenario> = {}
): Promise<(Scenario & { readonly fails: string }) | undefined> => {
  let plan = scenario.plan ?? planOf(seed)
  let actions = [...(scenario.actions ?? actionsOf(seed, plan))].sort((a, b) => a.at - b.at)
  const [first] = (await runOne(seed, { plan, actions })).failures
  if (first === undefined) return undefined
  const fails = async (plan: Plan, actions: ReadonlyArray<Action>) =>
    (await runOne(seed, { plan, actions })).failures.some(({ kind }) => kind === first.kind)
  for (let size = Math.ceil(actions.length / 2); size >= 1; size = Math.floor(size / 2))
    for (let at = 0; at < actions.length; ) {
      const without = actions.toSpliced(at, size)
      if (await fails(plan, without)) actions = without
      else at += size
    }
  const calmer: ReadonlyArray<Partial<Plan>> = [
    { lostAnswers: 0 },
    { lostAcks: 0 },
    { hostCap: undefined },
    { deadBytes: undefined },
    { maxWaiting: 20_000 },
    ...Array.from({ length: plan.workers - 1 }, (_, index) => ({ workers: index + 1 }))
  ]
  for (const change of calmer) {
    const next = { ...plan, ...change }
    if (actions.some((action) => "worker" in action && action.worker >= next.workers)) continue
    if (await fails(next, actions)) plan = next
  }
  return { seed, plan, actions, fails: `${first.kind}: ${first.what}` }
}
