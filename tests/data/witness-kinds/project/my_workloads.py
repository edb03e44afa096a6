"""A workload of the user's own."""

import muster


@muster.workload("triage")
async def triage(ctx, spec):
    async def label(i, ticket):
        return (await ctx.call(spec["agent"], ticket, key=f"ticket/{i}")).text

    return {"labels": [x async for x in ctx.map(label, spec["tickets"])]}
