import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { nth } from "../kit/engine.ts"
import { run } from "./in-process.ts"

const without = "there is no flag"

/** What is typed, what is said of it, and the command whose help is named. */
const wrong: ReadonlyArray<readonly [typed: string, said: string, help: string]> = [
  // Its value looks like a command, or like an argument.
  ["history --limt 3", `${without} --limt here; did you mean --limit?`, "history"],
  ["history --limt=3", `${without} --limt here; did you mean --limit?`, "history"],
  ["history --kind x --since y --foo 3", `${without} --foo here;`, "history"],
  ["history --follow totals", `${without} --follow here;`, "history totals"],
  [
    "history totals --tenat acme",
    `${without} --tenat here; did you mean --tenant?`,
    "history totals"
  ],
  [
    "history export --fromat csv",
    `${without} --fromat here; did you mean --format?`,
    "history export"
  ],
  ["--limit 3 history", `${without} --limit here;`, ""],
  // With the dashes, two letters of six would be a slip.
  ["publish acme a.b --data x", `${without} --data here;`, "publish"],
  ["dead --limit 3", `${without} --limit here;`, "dead"],
  ["dead list --opn 3", `${without} --opn here; did you mean --open?`, "dead list"],
  ["dead redeliver --al x", `${without} --al here; did you mean --all?`, "dead redeliver"],
  ["endpoint --foo acme/hook", `${without} --foo here;`, "endpoint"],
  ["endpoint add --ulr http://x", `${without} --ulr here;`, "endpoint add"],
  [
    "endpoint set acme/hook --foo --bar 3",
    `${without} --foo here; ${without} --bar here;`,
    "endpoint set"
  ],
  [
    "endpoint show --histroy",
    `${without} --histroy here; did you mean --history?`,
    "endpoint show"
  ],
  ["tenant --jsno show", `${without} --jsno here; did you mean --json?`, "tenant show"],
  ["alerts --foo 3", `${without} --foo here;`, "alerts"],
  ["delivery show --foo 3", `${without} --foo here;`, "delivery show"],
  ["delivery resend --by", "--by needs a value;", "delivery resend"],
  ["publish --foo a b c d e", `${without} --foo here;`, "publish"],
  ["replay --two acme/hook", `${without} --two here; did you mean --to?`, "replay"],
  ["audit --foo 3", `${without} --foo here;`, "audit"],
  ["projection status --foo 3", `${without} --foo here;`, "projection status"],
  ["rebuild --foo 3", `${without} --foo here;`, "rebuild"],
  ["status --chek 1", `${without} --chek here; did you mean --check?`, "status"],
  ["workers --foo 3", `${without} --foo here;`, "workers"],
  ["worker --nats --foo", `${without} --foo here;`, "worker"],
  ["worker --roles x --foo 3", `${without} --foo here;`, "worker"],
  ["init --replica 9", `${without} --replica here; did you mean --replicas?`, "init"],
  ["dev --stor 1", `${without} --stor here; did you mean --store?`, "dev"],
  ["repartition --foo 3", `${without} --foo here;`, "repartition"],
  ["presets -z 3", `${without} -z here;`, "presets"],
  // Of an unknown command nobody knows the flags.
  ["xyz --limit 3", 'there is no command "xyz", only', ""],
  ["dead lst --open", 'there is no command "lst"; did you mean list?', "dead"]
]

describe("help with a command that there is not", () => {
  it.live("is refused as the command is", () =>
    Effect.gen(function* () {
      for (const [typed, meant] of [
        ["wroker --help", "worker"],
        ["-h --json wroker", "worker"],
        ["dead lst --help", "list"],
        ["endpoint --nats nats://127.0.0.1:1 ad -h", "add"]
      ] as const) {
        const { code, err, out } = yield* run(...typed.split(" "))
        assert.deepStrictEqual([code, out, err.length], [2, [], 1], typed)
        assert.include(nth(err, 0), `did you mean ${meant}?`)
      }
      for (const typed of [
        "worker -h",
        "dead list --help",
        "history --tenant acme --help",
        "dead -h"
      ]) {
        const { code, err, out } = yield* run(...typed.split(" "))
        assert.deepStrictEqual([code, err], [0, []], typed)
        assert.isAbove(out.length, 5)
      }
    })
  )
})

describe("an unknown flag", () => {
  it.live("is named before anything else, with the flag that was meant", () =>
    Effect.gen(function* () {
      const ends = yield* Effect.forEach(wrong, ([typed]) => run(...typed.split(" ")), {
        concurrency: 4
      })
      for (const [index, { code, err, out }] of ends.entries()) {
        const [typed, said, help] = nth(wrong, index)
        assert.deepStrictEqual([code, out, err.length], [2, [], 1], typed)
        const line = nth(err, 0)
        assert.isTrue(line.startsWith(`petrel: ${said}`), line)
        assert.isTrue(line.endsWith(` see \`${`petrel ${help}`.trim()} --help\``), line)
        if (said.startsWith(without)) assert.notMatch(line, /no command|argument|needs|missing/)
      }
    })
  )
})
