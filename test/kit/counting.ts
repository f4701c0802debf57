import { latency, type Received, type Script } from "./receiver.ts"

/**
 * A script that answers after `time` (ms) and counts the requests in flight for each path, from all
 * senders.
 */
export const counting = (time: number, status: (request: Received) => number = () => 200) => {
  const now = new Map<string, number>()
  let most = 0
  const answer: Script = async (request) => {
    const { path } = request
    const count = (now.get(path) ?? 0) + 1
    now.set(path, count)
    most = Math.max(most, count)
    await latency(time)
    now.set(path, (now.get(path) ?? 1) - 1)
    return { status: status(request) }
  }
  return { answer, most: () => most }
}
