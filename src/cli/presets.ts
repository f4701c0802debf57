import { Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { RetryPolicy } from "../domain/retry-policy.ts"
import { spanText } from "../history/span.ts"
import { shortPolicy } from "../operations/endpoints/short-policy.ts"
import { durationText } from "../operations/text/time.ts"
import { ladder, totalTime } from "../policy/ladder.ts"
import type { Preset } from "../policy/presets.ts"
import { presets as all, findPreset, guides, UnknownPreset } from "../policy/presets.ts"
import { statusLadder, statusLimits } from "../policy/status-limit.ts"
import { petrel } from "./root-command.ts"
import { print } from "./stdout.ts"

const encode = Schema.encodeSync(RetryPolicy)

/** Returns a preset as JSON. `--retry` accepts its policy. */
const presetJson = ({ name, policy, source }: Preset): object => ({
  name,
  source,
  policy: encode(policy),
  caution: shortPolicy(policy),
  ladderMs: ladder(policy),
  statusLaddersMs: Object.fromEntries(
    [...statusLimits(policy)].map(([status, limit]) => [status, statusLadder(policy, limit)])
  ),
  totalMs: totalTime(policy)
})

/** One line for each status with limits of its own. */
const statusTexts = (policy: RetryPolicy): ReadonlyArray<string> =>
  [...statusLimits(policy)].map(([status, limit]) => {
    const rule = policy.statuses?.[status]
    const alert = typeof rule === "object" ? rule.alert : undefined
    const waits = statusLadder(policy, limit).map(spanText).join(", ")
    return [
      `  ${status.padEnd(8)}  at most ${limit.attempts} attempts within ${spanText(limit.windowMs)}`,
      ...(waits === "" ? [] : [`waits ${waits}`]),
      ...(alert === undefined ? [] : [`alert at ${alert} in a row`])
    ].join("; ")
  })

const presetText = ({ name, policy, source }: Preset): string => {
  const short = shortPolicy(policy)
  const timeout = policy.timeout === undefined ? "30 s, Petrel's own" : durationText(policy.timeout)
  const { connectTimeout } = policy
  const connecting =
    connectTimeout === undefined ? "" : `, ${durationText(connectTimeout)} of them to connect`
  return [
    name,
    `  source    ${source}`,
    `  attempts  at most ${policy.maxAttempts} within ${durationText(policy.window)}`,
    `  time-out  ${timeout}${connecting}`,
    `  waits     ${ladder(policy).map(spanText).join(", ")} (jitter: ${policy.jitter})`,
    `  in all    ${spanText(totalTime(policy))}`,
    ...statusTexts(policy),
    ...(short === undefined ? [] : [`  beware    it ${short}`])
  ].join("\n")
}

/** The guides that these presets name in their sources. */
const guidesText = (chosen: ReadonlyArray<Preset>): string =>
  [...guides]
    .filter(([number]) => chosen.some(({ source }) => source.includes(`guide ${number}`)))
    .map(([number, title]) => `guide ${number}: ${title}`)
    .join("\n")

/** Lists the named retry policies that `--retry` accepts. */
export const presets = Command.make(
  "presets",
  {
    name: Argument.String("NAME").pipe(Argument.withDescription("Only this one"), Argument.optional)
  },
  Effect.fnUntraced(function* ({ name }) {
    const { json } = yield* petrel
    const wanted = Option.getOrUndefined(name)
    const one = wanted === undefined ? undefined : findPreset(wanted)
    if (wanted !== undefined && one === undefined) return yield* new UnknownPreset({ name: wanted })
    const chosen = one === undefined ? [...all.values()] : [one]
    if (json) for (const preset of chosen) yield* print(JSON.stringify(presetJson(preset)))
    else yield* print([...chosen.map(presetText), guidesText(chosen)].join("\n\n"))
  })
).pipe(Command.withDescription("Show the retry policies that have a name"))
