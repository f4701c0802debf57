/* What a scenario is, and what comes out of one. */
import type { Effect, Scope } from "effect"
import type { TopLevelSpec } from "vega-lite"
import type { MachineUse } from "./machine.ts"

/** How much is measured. */
export interface Settings {
  /** Everything in a fraction of the time; the figures are rougher and the backlogs shorter. */
  readonly quick: boolean
  /** Rounds that count, after one that warms up. (Default: the scenario's own) */
  readonly rounds: number | undefined
}

/** What both sides of a comparison are called. */
export interface Sides {
  readonly petrel: string
  readonly limit: string
}

export const defaultSides: Sides = { petrel: "petrel", limit: "limit" }

/** One of the quantities that a scenario measures. */
export interface Figure {
  readonly title: string
  readonly unit: string
  readonly digits: number
  /** Figures of one panel are drawn side by side; one without a panel is not drawn. */
  readonly panel?: string
  /** Whose it is in its panel. (Default: "petrel") */
  readonly side?: keyof Sides
}

/** One round of one case. */
export interface Row {
  /** Which of the scenario's cases. */
  readonly of: string
  readonly round: number
  /** By the keys of the scenario's figures. */
  readonly figures: Readonly<Record<string, number>>
  /** Who took how much of the machine while Petrel ran, and while the limit did. */
  readonly machine?: Readonly<Partial<Record<keyof Sides, MachineUse>>>
}

/** What a median is hoped to be. */
export interface Aim {
  readonly of: string
  readonly figure: string
  readonly atMost?: number
  readonly atLeast?: number
}

/** What a scenario leaves beside its rows. */
export interface Outcome {
  /** What was measured with: numbers of events, endpoints, bytes, and the like. */
  readonly settings: Readonly<Record<string, number | string | boolean>>
  readonly aims?: ReadonlyArray<Aim>
  /** What a reader of the figures must know. */
  readonly notes?: ReadonlyArray<string>
  /** Beyond rounds and cases: curves, courses over time. Stored as it is. */
  readonly details?: object
  /** (Default: medians of all figures that have a panel, with minimum and maximum) */
  readonly picture?: TopLevelSpec
}

export interface Scenario {
  readonly name: string
  /** In a sentence. */
  readonly measures: string
  /** What Petrel is compared with, in a sentence. */
  readonly limit: string
  /** (Default: petrel and limit) */
  readonly sides?: Sides
  /** It runs only when it is named. */
  readonly onlyNamed?: true
  readonly figures: Readonly<Record<string, Figure>>
  /** Calls `row` as soon as a round is through. */
  readonly run: (
    settings: Settings,
    row: (row: Row) => void
  ) => Effect.Effect<Outcome, unknown, Scope.Scope>
}
