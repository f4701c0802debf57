/* A scenario and its results. */
import type { Effect, Scope } from "effect"
import type { TopLevelSpec } from "vega-lite"
import type { MachineUse } from "./machine.ts"

/** The extent of a measurement. */
export interface Settings {
  /** Runs in a fraction of the time; the figures are rougher and the backlogs shorter. */
  readonly quick: boolean
  /** Rounds that count, after one that warms up. (Default: the scenario's own) */
  readonly rounds: number | undefined
  /** What the scenario far-behind can be asked for. (Default: its own) */
  readonly load: Readonly<Partial<Record<LoadName, number>>>
}

/** Names of the options that only the scenario far-behind has. */
export const loadNames = ["events", "endpoints", "body", "failing"] as const
type LoadName = (typeof loadNames)[number]

/** The names of both sides of a comparison. */
export interface Sides {
  readonly petrel: string
  readonly limit: string
}

export const defaultSides: Sides = { petrel: "petrel", limit: "limit" }

/** A quantity that a scenario measures. */
export interface Figure {
  readonly title: string
  readonly unit: string
  readonly digits: number
  /** Figures of one panel are drawn side by side. A figure without a panel is not drawn. */
  readonly panel?: string
  /** The side that it belongs to in its panel. (Default: "petrel") */
  readonly side?: keyof Sides
}

/** One round of one case. */
export interface Row {
  /** The name of the case. */
  readonly of: string
  readonly round: number
  /** By the keys of the scenario's figures. */
  readonly figures: Readonly<Record<string, number>>
  /** CPU use by process while Petrel ran, and while the limit ran. */
  readonly machine?: Readonly<Partial<Record<keyof Sides, MachineUse>>>
}

/** The target of a median. */
export interface Aim {
  readonly of: string
  readonly figure: string
  readonly atMost?: number
  readonly atLeast?: number
}

/** The results of a scenario in addition to its rows. */
export interface Outcome {
  /** The parameters of the measurement: numbers of events, endpoints, bytes, and the like. */
  readonly settings: Readonly<Record<string, number | string | boolean>>
  readonly aims?: ReadonlyArray<Aim>
  /** Notes that are needed to interpret the figures. */
  readonly notes?: ReadonlyArray<string>
  /** Results other than rounds and cases, such as curves and time series. Stored unchanged. */
  readonly details?: object
  /** (Default: medians of all figures that have a panel, with minimum and maximum) */
  readonly picture?: TopLevelSpec
}

export interface Scenario {
  readonly name: string
  /** In one sentence. */
  readonly measures: string
  /** What Petrel is compared with, in one sentence. */
  readonly limit: string
  /** (Default: petrel and limit) */
  readonly sides?: Sides
  /** Runs only if it is named. */
  readonly onlyNamed?: true
  readonly figures: Readonly<Record<string, Figure>>
  /** Calls `row` after each round. */
  readonly run: (
    settings: Settings,
    row: (row: Row) => void
  ) => Effect.Effect<Outcome, unknown, Scope.Scope>
}
