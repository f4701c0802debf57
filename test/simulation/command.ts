/* Carries out the command: seeds in turn, in one process or several. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { FaultTable } from "./fault-table.ts"
import { lifeOf } from "./life.ts"
import type { Options } from "./options.ts"
import { backlogTraps, bypassTraps, sabotages } from "./sabotages.ts"
import type { Scenario } from "./scenario.ts"
import { readScenario, runOne } from "./scenario.ts"
import { shrink } from "./shrink.ts"
import type { Result } from "./simulation.ts"

/** A sabotage that is not found within this many seeds is a hole. */
export const sabotageSeeds = 2_000

const say = ({ failures, hash, seed, virtualMs }: Result): void => {
  console.log(
    `seed ${seed}: ${failures.length} failures, ${Math.round(virtualMs / 1000)} s, ${hash}`
  )
  for (const { kind, what } of failures) console.log(`  ${kind}: ${what}`)
}

const jsonOf = (result: Result): string =>
  JSON.stringify({ ...result, injected: [...result.injected], log: undefined })

const oneSeed = async (options: Options, scenario: Partial<Scenario>): Promise<number> => {
  const seed = Number(options.seed ?? scenario.seed)
  if (options.shrink) {
    const found = await shrink(seed, scenario)
    const { sabotage } = options
    console.log(JSON.stringify(found && { sabotage, ...found }, undefined, 1))
    return found === undefined ? 0 : 1
  }
  const result = await runOne(seed, scenario, options.trace)
  if (options.json) {
    console.log(jsonOf(result))
    return result.failures.length === 0 ? 0 : 1
  }
  const { only = "" } = options
  for (const line of result.log) if (line.includes(only)) console.log(line)
  const [failure] = result.failures
  const life = failure === undefined ? [] : lifeOf(result.log, failure.what)
  if (life.length > 0) console.log(`\nThe life of ${failure?.what}:`)
  for (const line of life) console.log(line)
  say(result)
  return result.failures.length === 0 ? 0 : 1
}

/** Runs seeds in this process. Returns how many failed. */
const runSeeds = async (options: Options, from: number, step: number): Promise<FaultTable> => {
  const count = options.seeds === undefined ? Number.POSITIVE_INFINITY : Number(options.seeds)
  const seconds = Number(options.seconds ?? (options.hour ? 3_600 : Number.POSITIVE_INFINITY))
  const until = performance.now() + seconds * 1_000
  const table = new FaultTable()
  for (let n = 0; n * step < count && performance.now() < until; n++) {
    const result = await runOne(from + n * step)
    table.add(result)
    if (options.json) console.log(jsonOf(result))
    else if (result.failures.length > 0) say(result)
    if (options.sabotage === undefined || result.failures.length === 0) continue
    // What fails without the sabotage as well does not show it.
    if ((await inProcess([...engineOf(options), "--seed", String(result.seed)], () => {})) === 0) {
      console.log(`${options.sabotage}: found after ${n + 1} seeds: ${result.failures[0]?.kind}`)
      break
    }
    console.log(`seed ${result.seed} fails without ${options.sabotage} as well`)
  }
  return table
}

/** What of the engine is otherwise, as options. */
const engineOf = (options: Options): ReadonlyArray<string> =>
  (["large", "crowded", "bypass"] as const).flatMap((name) => (options[name] ? [`--${name}`] : []))

/** Runs this command again in a process of its own. Returns its output. */
const inProcess = (args: ReadonlyArray<string>, show: (text: string) => void): Promise<number> =>
  new Promise((resolve) => {
    const main = fileURLToPath(new URL("./main.ts", import.meta.url))
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "inherit"] })
    child.stdout.setEncoding("utf8").on("data", show)
    child.on("close", (code) => resolve(code ?? 1))
  })

const trySabotages = async (options: Options): Promise<number> => {
  const all = [
    ...[...sabotages, ...backlogTraps].map((one) => ({ ...one, engine: [] })),
    ...bypassTraps.map((one) => ({ ...one, engine: ["--bypass"] }))
  ]
  let found = 0
  const seeds = options.seeds ?? String(sabotageSeeds)
  for (const { engine, name, what } of all) {
    let output = ""
    const range = ["--seeds", seeds, "--from", options.from]
    await inProcess(["--sabotage", name, ...range, ...engine], (text) => {
      output += text
    })
    const line = output.split("\n").find((each) => each.startsWith(`${name}: found`))
    if (line !== undefined) found++
    console.log(`${line ?? `${name}: NOT FOUND in ${seeds} seeds`} (${what})`)
  }
  console.log(`${found} of ${all.length} sabotages found`)
  return found === all.length ? 0 : 1
}

/** Restarts processes after some seeds: what V8 keeps of a run adds up. */
const seedsPerProcess = 300

const inProcesses = async (options: Options, processes: number): Promise<number> => {
  const seconds = Number(options.seconds ?? (options.hour ? 3_600 : Number.POSITIVE_INFINITY))
  const begun = performance.now()
  const isOver = () => performance.now() - begun > seconds * 1_000
  const first = options.hour ? Math.floor(Date.now() / 1000) * 1_000 : Number(options.from)
  const last =
    options.seeds === undefined ? Number.POSITIVE_INFINITY : first + Number(options.seeds)
  const table = new FaultTable()
  let next = first
  const one = async () => {
    while (next < last && !isOver()) {
      const from = next
      next = Math.min(last, next + seedsPerProcess)
      const left = Math.max(1, seconds - (performance.now() - begun) / 1_000)
      const bounds = Number.isFinite(left) ? ["--seconds", String(left)] : []
      const range = ["--from", String(from), "--seeds", String(next - from)]
      let rest = ""
      await inProcess(["--json", ...range, ...bounds, ...engineOf(options)], (text) => {
        const lines = (rest + text).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          if (!line.startsWith("{")) continue
          const result = JSON.parse(line)
          table.add({ ...result, injected: new Map(result.injected) })
          if (result.failures.length > 0) say(result)
        }
      })
    }
  }
  await Promise.all(Array.from({ length: processes }, one))
  console.log(table.summary(begun))
  console.log(table.text)
  return table.failed === 0 ? 0 : 1
}

export const runCommand = async (options: Options): Promise<number> => {
  if (options.sabotages) return trySabotages(options)
  if (options.file !== undefined) {
    let failed = 0
    for (const file of options.file) failed += await oneSeed(options, readScenario(file))
    return Math.min(1, failed)
  }
  if (options.seed !== undefined) return oneSeed(options, {})
  const processes = Number(options.processes ?? (options.hour ? 2 : 1))
  if (processes > 1) return inProcesses(options, processes)
  const bounded =
    options.seeds === undefined && options.seconds === undefined
      ? { ...options, seeds: "100" }
      : options
  const begun = performance.now()
  const table = await runSeeds(bounded, Number(options.from), 1)
  if (!options.json) {
    console.log(table.summary(begun))
    if (options.table) console.log(table.text)
  }
  return table.failed === 0 ? 0 : 1
}
