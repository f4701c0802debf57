/* `npm run build`: makes the package, which runs on Node alone. */
import { dist, writePackage } from "./package.ts"

await writePackage(dist)
