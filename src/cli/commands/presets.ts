import { Effect, Option, Result, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { RetryPolicy } from "../../domain/retry-policy.ts"
import { shortPolicy } from "../../operations/endpoints/cautions.ts"
import { encodeOutline, outlined } from "../../operations/endpoints/outlined-policy.ts"
import { readInput } from "../../operations/input.ts"
import type { Preset } from "../../policy/presets.ts"
import { presets as all, findPreset, guides, UnknownPreset } from "../../policy/presets.ts"
import { ladder, totalTime } from "../../policy/retry-outline.ts"
import { statusLadder, statusLimits } from "../../policy/status-limit.ts"
import { durationText, spanText } from "../../text/quantities.ts"
import { readJson } from "../flags/flag-problems.ts"
import { svgFlag, writeSvg } from "../flags/shared.ts"
import { outlineLines } from "../format/outline.ts"
import { screenWidth } from "../format/screen.ts"
import { refusal } from "../refused.ts"
import { petrel } from "../root-command.ts"
import { print } from "../terminal/stdout.ts"

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

/** Returns the policy that an argument means: a preset, or one written as JSON. */
const policyIn = Effect.fnUntraced(function* (text: string) {
  const preset = findPreset(text)
  if (preset !== undefined) return { preset, policy: preset.policy }
  if (!text.trimStart().startsWith("{"))
    return yield* refusal([new UnknownPreset({ name: text }).message])
  const json = readJson("NAME|JSON", text, "a preset or a policy as JSON")
  if (Result.isFailure(json)) return yield* refusal(json.failure)
  const read = readInput(RetryPolicy, json.success)
  if (Result.isFailure(read))
    return yield* refusal(
      read.failure.map(({ field, message }) => `the policy: ${field} ${message}`)
    )
  return { preset: undefined, policy: read.success }
})

/** Shows one policy, drawn. */
const showOne = Effect.fnUntraced(function* (text: string, svg: string | undefined) {
  const { json } = yield* petrel
  const { policy, preset } = yield* policyIn(text)
  const outline = outlined(preset?.name ?? "a policy of its own", policy)
  if (svg !== undefined) return yield* writeSvg(svg, [outline])
  if (json)
    return yield* print(
      JSON.stringify({
        ...(preset === undefined ? {} : presetJson(preset)),
        outline: encodeOutline(outline)
      })
    )
  const drawing = outlineLines(outline, screenWidth())
  const lines =
    preset === undefined
      ? drawing
      : [presetText(preset), "", ...drawing.slice(1), "", guidesText([preset])]
  yield* print(lines.join("\n"))
})

/** Lists the named retry policies that `--retry` accepts. */
export const presets = Command.make(
  "presets",
  {
    name: Argument.String("NAME|JSON").pipe(
      Argument.withDescription("Draw this one, or a policy of your own"),
      Argument.optional
    ),
    svg: svgFlag
  },
  Effect.fnUntraced(function* ({ name, svg }) {
    const { json } = yield* petrel
    if (Option.isSome(name)) return yield* showOne(name.value, svg)
    if (svg !== undefined)
      return yield* refusal(["--svg draws one policy: name it, or give it as JSON"])
    const chosen = [...all.values()]
    if (json) for (const preset of chosen) yield* print(JSON.stringify(presetJson(preset)))
    else yield* print([...chosen.map(presetText), guidesText(chosen)].join("\n\n"))
  })
).pipe(
  Command.withDescription("Show the retry presets, or draw one policy"),
  Command.withExamples([
    { command: "petrel presets stripe", description: "Each wait as a bar, with its jitter" },
    { command: "petrel presets default --svg default.svg" }
  ])
)
