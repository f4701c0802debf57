import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { run } from "./in-process.ts"

/** Returns the help of a command, in blocks that begin with a heading at the left margin. */
export const helpOf = (path: ReadonlyArray<string>) =>
  Effect.map(run(...path, "--help"), ({ code, err, out }) => {
    assert.deepStrictEqual({ code, err }, { code: 0, err: [] })
    return out.join("\n").split(/\n+(?=[A-Z])/)
  })

/** Returns the names of the subcommands that a help lists. */
export const subcommandsIn = (blocks: ReadonlyArray<string>): ReadonlyArray<string> =>
  blocks
    .filter((block) => block.startsWith("SUBCOMMANDS\n"))
    .flatMap((block) => [...block.matchAll(/^ {2}(\S+)/gm)].map(([, name = ""]) => name))
