import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import type { Failure } from "./oracle.ts"

interface Run {
  readonly seed: number
  readonly hash: string
  readonly failures: ReadonlyArray<Failure>
  readonly deliveries: number
}

const main = fileURLToPath(new URL("./main.ts", import.meta.url))

/** Runs the command in a process of its own: it replaces the clocks of its process. */
const simulate = (...args: ReadonlyArray<string>): Promise<ReadonlyArray<Run>> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, "--json", ...args], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      text += piece
    })
    child.on("error", reject)
    child.on("close", () =>
      resolve(text.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : [])))
    )
  })

/** How many seeds are run, on a slow machine as well: another would look further than this one. */
const firstSeeds = 120
/** Seeds that are run twice. */
const comparedSeeds = 5

/** Seeds in which each event for several endpoints is one for many. */
const largeSeeds = 30

/* No test is tried again: a seed does the same each time. */
describe("the simulation", () => {
  for (const [what, args] of [
    ["the first seeds", ["--seeds", String(firstSeeds)]],
    [
      "seeds whose events are routed in turns",
      ["--large", "--seeds", String(largeSeeds), "--from", "7000241"]
    ],
    [
      "seeds in which a few events fill the window of a router",
      ["--crowded", "--seeds", String(largeSeeds), "--from", "7900001"]
    ],
    [
      "seeds whose events pass by a bypass",
      ["--bypass", "--seeds", String(largeSeeds), "--from", "8000001"]
    ],
    [
      "the seed in which a message comes after what followed it is gone",
      ["--large", "--seeds", "1", "--from", "7100110"]
    ]
  ] as const)
    it(`finds nothing wrong in ${what}`, { retry: 0, timeout: 180_000 }, async () => {
      const runs = await simulate(...args)
      assert.isAtLeast(runs.length, 1)
      const failed = runs.filter(({ failures }) => failures.length > 0)
      const says = failed.map(
        ({ failures, seed }) => `seed ${seed}: ${failures[0]?.kind}: ${failures[0]?.what}`
      )
      assert.deepStrictEqual(says, [])
      assert.isAbove(
        runs.reduce((sum, { deliveries }) => sum + deliveries, 0),
        0
      )
    })

  it("does the same for the same seed", { retry: 0, timeout: 180_000 }, async () => {
    const once = await simulate("--seeds", String(comparedSeeds), "--from", "500")
    // In another order: what a seed does depends on no other.
    const again: Array<Run> = []
    for (let seed = 500 + comparedSeeds - 1; seed >= 500; seed--)
      again.unshift(...(await simulate("--seed", String(seed))))
    const hashes = (runs: ReadonlyArray<Run>) => runs.map(({ hash, seed }) => `${seed} ${hash}`)
    assert.lengthOf(once, comparedSeeds)
    assert.deepStrictEqual(hashes(again), hashes(once))
  })
})
