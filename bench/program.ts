/* Which Petrel is measured. */
import { fileURLToPath } from "node:url"
import { Context } from "effect"

/** The program that all processes of Petrel are started with. */
export const Program = Context.Reference<string>("petrel-bench/Program", {
  defaultValue: () => fileURLToPath(new URL("../src/cli/main.ts", import.meta.url))
})
