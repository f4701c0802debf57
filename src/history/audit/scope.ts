/** What is audited. Sequences in EVENTS, inclusive; times in ms since the epoch, inclusive. */
export interface Scope {
  readonly firstEvent: number
  readonly lastEvent: number
  /** Events below it are gone: whether they are meant, the time of what began their rounds says. */
  readonly firstKept: number
  readonly since: number
  readonly until: number
  /** Only this one's. */
  readonly tenant?: string | undefined
  /** No fact is gone that an outcome could refer to. */
  readonly isWhole: boolean
}
