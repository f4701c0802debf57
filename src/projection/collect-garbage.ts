import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

let collect: NodeJS.GCFunction | undefined

/**
 * Collects all garbage of this thread and gives its memory back: V8 keeps what a burst of work needed
 * for as long as there is little to do after it. Takes some 20 to 250 ms.
 */
export const collectGarbage = (): void => {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc")
    collect = runInNewContext("gc") as NodeJS.GCFunction
  }
  collect({ type: "major", execution: "sync", flavor: "last-resort" })
}
