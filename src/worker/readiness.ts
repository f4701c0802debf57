/** What a worker knows of itself at a moment. */
interface WorkerState {
  readonly isConnected: boolean
  /** True while the others see its heartbeats. */
  readonly isKnown: boolean
  /** True while the history takes facts. */
  readonly isHistoryOpen: boolean
  /** Streams in which publishes time out and none is stored. */
  readonly unanswered: ReadonlyArray<string>
  /** True once it delivers in its partitions, or where it is not to. */
  readonly delivers: boolean
  readonly isStopping: boolean
  /** Partitions whose lease was not renewed in time. */
  readonly overdue: ReadonlyArray<number>
}

/** Returns what keeps a worker from its work, one sentence each; none if it is ready. */
export const problemsOf = (state: WorkerState): ReadonlyArray<string> => {
  if (state.isStopping) return ["the worker is stopping"]
  if (!state.isConnected) return ["the broker is not connected"]
  const { overdue, unanswered } = state
  return [
    ...(state.isKnown ? [] : ["the worker's heartbeats are not seen in the bucket of workers"]),
    ...(state.isHistoryOpen ? [] : ["the history takes no facts: nothing new is sent"]),
    ...(unanswered.length === 0
      ? []
      : [`the broker acknowledges nothing that is to be stored in ${unanswered.join(", ")}`]),
    ...(overdue.length === 0
      ? []
      : [
          `the lease of ${overdue.length === 1 ? "partition" : "partitions"} ${overdue.join(", ")} was not renewed in time`
        ]),
    ...(state.delivers ? [] : ["the worker has not begun to deliver"])
  ]
}
