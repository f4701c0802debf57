/* The summary of a scenario's rows. */
import { cores, type MachineUse } from "./machine.ts"
import type { Aim, Row, Scenario, Sides } from "./scenario.ts"
import { type Spread, spreadOf } from "./spread.ts"

/** One figure of one case, over all rounds. */
export interface Line extends Spread {
  readonly of: string
  readonly figure: string
}

/** CPU use by process while Petrel, or its limit, ran in one case: medians, in cores. */
export interface UseLine {
  readonly of: string
  readonly side: keyof Sides
  readonly processes: Readonly<Record<string, number>>
  readonly others: number
  readonly idle: number
}

export interface JudgedAim extends Aim {
  readonly median: number
  readonly met: boolean
}

export interface Summary {
  readonly lines: ReadonlyArray<Line>
  readonly machine: ReadonlyArray<UseLine>
  readonly aims: ReadonlyArray<JudgedAim>
  readonly warnings: ReadonlyArray<string>
}

/**
 * Share of a core. Above it, the receiver or the publisher may be what is measured, instead of
 * Petrel.
 */
const tooBusy = 0.7
/** Share of the machine. If other programs use more, they affect the figures. */
const tooMany = 0.1

const sides = ["petrel", "limit"] as const
const distinct = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(all)]
const median = (numbers: ReadonlyArray<number>) => spreadOf(numbers).median

const useOf = (of: string, side: UseLine["side"], rows: ReadonlyArray<Row>) => {
  const uses = rows
    .filter((row) => row.of === of)
    .map(({ machine }) => machine?.[side])
    .filter((use): use is MachineUse => use !== undefined)
  if (uses.length === 0) return []
  const names = distinct(uses.flatMap(({ processes }) => Object.keys(processes)))
  const line: UseLine = {
    of,
    side,
    processes: Object.fromEntries(
      names.map((name) => [name, median(uses.map(({ processes }) => processes[name] ?? 0))])
    ),
    others: median(uses.map(({ others }) => others)),
    idle: median(uses.map(({ idle }) => idle))
  }
  return [line]
}

const percent = (share: number) => `${(share * 100).toFixed(0)}%`

const warningsOf = (machine: ReadonlyArray<UseLine>): ReadonlyArray<string> =>
  machine.flatMap(({ of, others, processes, side }) => {
    const where = side === "petrel" ? `of ${of}` : `of ${of}, the limit's part`
    const busy = ["receiver", "publisher"]
      .filter((name) => (processes[name] ?? 0) > tooBusy)
      .map(
        (name) =>
          `${where}: the ${name} took ${percent(processes[name] ?? 0)} of a core and may be the bottleneck`
      )
    return others > tooMany * cores
      ? [...busy, `${where}: other programs took ${percent(others / cores)} of the machine`]
      : busy
  })

const judge = (aim: Aim, lines: ReadonlyArray<Line>): ReadonlyArray<JudgedAim> => {
  const line = lines.find(({ figure, of }) => figure === aim.figure && of === aim.of)
  if (line === undefined) return []
  const met =
    line.median <= (aim.atMost ?? Number.POSITIVE_INFINITY) &&
    line.median >= (aim.atLeast ?? Number.NEGATIVE_INFINITY)
  return [{ ...aim, median: line.median, met }]
}

/** In the order of the cases and of the listed figures. */
export const summarize = (
  { figures }: Pick<Scenario, "figures">,
  rows: ReadonlyArray<Row>,
  aims: ReadonlyArray<Aim>
): Summary => {
  const cases = distinct(rows.map(({ of }) => of))
  const lines = cases.flatMap((of) =>
    Object.keys(figures).flatMap((figure): ReadonlyArray<Line> => {
      const found = rows
        .filter((row) => row.of === of)
        .map((row) => row.figures[figure])
        .filter((value) => value !== undefined)
      return found.length === 0 ? [] : [{ of, figure, ...spreadOf(found) }]
    })
  )
  const machine = cases.flatMap((of) => sides.flatMap((side) => useOf(of, side, rows)))
  return {
    lines,
    machine,
    aims: aims.flatMap((aim) => judge(aim, lines)),
    warnings: warningsOf(machine)
  }
}
