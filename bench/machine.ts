/* Who takes how much of the machine: all processes of a measurement share its cores. */
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { cpuOf } from "./processes.ts"

/** Cores that were busy on average: 1 is a whole one. */
export interface MachineUse {
  readonly seconds: number
  /** By the name of the process; of several workers their sum. */
  readonly processes: Readonly<Record<string, number>>
  /** Other programs, and what the kernel does for nobody in particular. */
  readonly others: number
  readonly idle: number
}

/** The processes to watch, by name. */
export type Watched = Readonly<Record<string, ReadonlyArray<number>>>

/** Of the whole machine, busy and idle, in µs; nothing where there is no /proc. */
const machine = () => {
  try {
    const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n")
    const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, hard = 0, soft = 0] = line
      .split(/\s+/)
      .slice(1)
      .map((ticks) => Number(ticks) * 10_000)
    return { busy: user + nice + system + hard + soft, idle: idle + waiting }
  } catch {
    return undefined
  }
}

const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((a, b) => a + b, 0)

/** Begins to watch. What it returns ends it: CPU time in µs by process, and the use of the machine. */
export const watch = (processes: Watched) => {
  const all: Watched = { ...processes, bench: [process.pid] }
  const read = () =>
    Object.fromEntries(
      Object.entries(all).map(([name, pids]) => [name, sum(pids.map(cpuOf))] as const)
    )
  const begun = performance.now()
  const before = { cpu: read(), machine: machine() }
  return () => {
    const micros = (performance.now() - begun) * 1000
    const after = { cpu: read(), machine: machine() }
    const cpu = Object.fromEntries(
      Object.entries(after.cpu).map(([name, spent]) => [name, spent - (before.cpu[name] ?? 0)])
    )
    const ours = sum(Object.values(cpu))
    const busy = (after.machine?.busy ?? 0) - (before.machine?.busy ?? 0)
    const idle = (after.machine?.idle ?? 0) - (before.machine?.idle ?? 0)
    const use: MachineUse = {
      seconds: micros / 1e6,
      processes: Object.fromEntries(
        Object.entries(cpu).map(([name, spent]) => [name, spent / micros])
      ),
      others: Math.max(0, (busy - ours) / micros),
      idle: idle / micros
    }
    return { cpu, use }
  }
}

/** Of several times of the same length, how much there was of each on average. */
export const meanUse = (uses: ReadonlyArray<MachineUse>): MachineUse => {
  const mean = (of: (use: MachineUse) => number) => sum(uses.map(of)) / uses.length
  return {
    seconds: sum(uses.map(({ seconds }) => seconds)),
    processes: Object.fromEntries(
      Object.keys(uses[0]?.processes ?? {}).map((name) => [
        name,
        mean(({ processes }) => processes[name] ?? 0)
      ])
    ),
    others: mean(({ others }) => others),
    idle: mean(({ idle }) => idle)
  }
}

/** Cores that this process may use. */
export const cores = availableParallelism()
