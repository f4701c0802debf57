import { Effect } from "effect"

/** Waits for conditions, which are checked again on each change. */
export const makeConditions = () => {
  const waiting = new Set<() => void>()
  return {
    changed: () => {
      for (const look of waiting) look()
    },
    until: (holds: () => boolean) =>
      Effect.callback<void>((resume) => {
        const look = () => {
          if (!holds()) return
          waiting.delete(look)
          resume(Effect.void)
        }
        waiting.add(look)
        look()
        return Effect.sync(() => waiting.delete(look))
      })
  }
}
