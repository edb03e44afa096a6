// Puts a battle into the queue, waits until a `muster worker` has played it, and prints what it came to.
//
//   npm install
//   REDIS_URL=redis://127.0.0.1:6379/0 node enqueue.mjs battle-1 '{"agentId": "sim/echo", "messageLimit": 2}'
//
// The data is the body of POST /api/battles/start. The id of the job is the id of the battle: adding it again while it
// is kept adds nothing, and a worker that gets it again goes on with the same battle.
import { Queue, QueueEvents } from "bullmq";
import { Redis } from "ioredis";

const [id, data] = process.argv.slice(2);
if (!id || !data || !process.env.REDIS_URL) {
  console.error("usage: REDIS_URL=redis://HOST:PORT/0 node enqueue.mjs ID JSON");
  process.exit(2);
}

const connection = new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
const queue = new Queue("battles", { connection });
const events = new QueueEvents("battles", { connection });

try {
  await events.waitUntilReady();
  const job = await queue.add("battle", JSON.parse(data), {
    jobId: id,
    removeOnComplete: { age: 86400, count: 1000 },
    removeOnFail: { age: 604800, count: 1000 },
  });
  const region = process.env.MUSTER_REGION ?? "local";
  if ((await connection.exists(`worker:background:heartbeat:${region}`)) === 0) {
    console.error(`no worker is alive in region ${region}; the battle waits for one`);
  }
  console.log(JSON.stringify(await job.waitUntilFinished(events)));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await events.close();
  await queue.close();
  connection.disconnect();
}
