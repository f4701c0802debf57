/** The range of an audit. Sequences in EVENTS and times in ms since the epoch, all inclusive. */
export interface Scope {
  readonly firstEvent: number
  readonly lastEvent: number
  /**
   * The first event that is still stored. Whether an earlier one is in range depends on when its
   * rounds began.
   */
  readonly firstKept: number
  readonly since: number
  readonly until: number
  /** Audit only this tenant. */
  readonly tenant?: string | undefined
  /** True if no fact is gone that an outcome could refer to. */
  readonly isWhole: boolean
}
