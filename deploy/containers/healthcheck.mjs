// HEALTHCHECK of the image: exits with 0 if the process in the container says that it is well.
const url = process.env.PETREL_HEALTH ?? "http://127.0.0.1:9464/healthz"
const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) }).catch((error) => error)
if (answer.ok !== true) {
  console.error(answer.status === undefined ? `${url}: ${answer.message}` : await answer.text())
  process.exitCode = 1
}
