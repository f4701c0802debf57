import { Duration, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { RetryPolicy } from "../domain/retry-policy.ts"
import { ladder, totalTime } from "../policy/ladder.ts"
import type { Preset } from "../policy/presets.ts"
import { presets as all, findPreset, UnknownPreset } from "../policy/presets.ts"
import { report } from "./frame.ts"

const encode = Schema.encodeSync(RetryPolicy)

const shown = (ms: number): string => Duration.format(Duration.millis(ms))

const text = ({ name, policy, source }: Preset): string =>
  [
    name,
    `  source    ${source}`,
    `  attempts  ${policy.maxAttempts} within ${shown(Duration.toMillis(policy.window))}, ${policy.timeout === undefined ? "no time-out of its own" : `${shown(Duration.toMillis(policy.timeout))} each`}`,
    `  waits     ${ladder(policy).map(shown).join(", ")} (jitter: ${policy.jitter})`,
    `  in all    ${shown(totalTime(policy))}`
  ].join("\n")

/** The named retry policies: what `--retry` takes. */
export const presets = Command.make(
  "presets",
  {
    name: Argument.String("NAME").pipe(Argument.withDescription("Only this one"), Argument.optional)
  },
  Effect.fnUntraced(function* ({ name }) {
    const chosen = Option.match(name, {
      onNone: () => [...all.values()],
      onSome: (wanted) => [findPreset(wanted) ?? new UnknownPreset({ name: wanted })]
    })
    for (const preset of chosen) {
      if (preset instanceof UnknownPreset) return yield* preset
      yield* report(
        {
          name: preset.name,
          source: preset.source,
          policy: encode(preset.policy),
          ladderMs: ladder(preset.policy),
          totalMs: totalTime(preset.policy)
        },
        text(preset)
      )
    }
  })
).pipe(Command.withDescription("Show the retry policies that have a name"))
