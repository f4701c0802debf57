/** How badly a receiver for staging behaves. */
export interface Misbehaviour {
  /** The first requests of each event that fail. */
  readonly failFirst: number | undefined
  /** Share of all requests that fail, from 0 to 100. */
  readonly percent: number | undefined
  /** The status of requests that fail; where none is told to, of all. */
  readonly status: number | undefined
  /** Requests that fail get no answer; where none is told to, none gets one. */
  readonly drop: boolean
  /** Retry-After of requests that fail, s. */
  readonly retryAfter: number | undefined
}

/** What a request is answered. */
export type Reply =
  | { readonly _tag: "Drop" }
  | { readonly _tag: "Fail"; readonly status: number; readonly retryAfter: number | undefined }
  | { readonly _tag: "Succeed"; readonly status: number }

const isSuccess = (status: number): boolean => status >= 200 && status < 300

/**
 * Decides what a request is answered.
 *
 * @param seen requests of the same event before this one.
 * @param random number in [0, 1).
 */
export const replyTo = (
  { drop, failFirst, percent, retryAfter, status }: Misbehaviour,
  seen: number,
  random: number
): Reply => {
  const isChosen =
    failFirst === undefined && percent === undefined
      ? drop || (status !== undefined && !isSuccess(status))
      : seen < (failFirst ?? 0) || random * 100 < (percent ?? 0)
  if (!isChosen) {
    const good = status !== undefined && isSuccess(status) ? status : 200
    return { _tag: "Succeed", status: good }
  }
  return drop ? { _tag: "Drop" } : { _tag: "Fail", status: status ?? 500, retryAfter }
}

/** Returns what makes no sense about a misbehaviour, as sentences about its fields. */
export const misbehaviourProblems = ({
  drop,
  failFirst,
  percent,
  retryAfter,
  status
}: Misbehaviour): ReadonlyArray<string> => {
  const isPartial = failFirst !== undefined || percent !== undefined
  return [
    ...(drop && status !== undefined
      ? ["`drop` closes the connection without an answer, so there is no `status` to send"]
      : []),
    ...(isPartial && status !== undefined && isSuccess(status)
      ? [`\`status\` ${status} is no failure: leave it out, or take one such as 500`]
      : []),
    ...(retryAfter !== undefined &&
    (drop || !(isPartial || (status !== undefined && !isSuccess(status))))
      ? ["`retryAfter` goes with answers that fail: add `status` 429, `fail` or `percent`"]
      : [])
  ]
}
