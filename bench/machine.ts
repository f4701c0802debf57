/* CPU use by process: all processes of a measurement share the machine's cores. */
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { cpuOf } from "./processes.ts"

/** Average number of busy cores: 1 is a whole core. */
export interface MachineUse {
  readonly seconds: number
  /** By the name of the process; the sum of several workers. */
  readonly processes: Readonly<Record<string, number>>
  /** Other programs, and kernel work that is not attributed to a process. */
  readonly others: number
  readonly idle: number
}

/** The process ids to measure, by name. */
export type Watched = Readonly<Record<string, ReadonlyArray<number>>>

/** Returns the busy and idle time of the whole machine in µs; undefined without /proc. */
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

/**
 * Starts a measurement. Call the returned function to end it: it returns the CPU time in µs by
 * process, and the use of the machine.
 */
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

/** Returns the average of several measurements of equal length. */
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

/** Cores available to this process. */
export const cores = availableParallelism()
