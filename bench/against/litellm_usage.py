# LiteLLM's way to log usage without a database: a callback of its own, after each answer. Its spend
# logs need Prisma's engines, which are downloaded from the internet.
import json
import os

from litellm.integrations.custom_logger import CustomLogger

LOG = open(os.environ["BENCH_USAGE_LOG"], "a", buffering=1)


class UsageLog(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        usage = response_obj.get("usage")
        record = {
            "id": response_obj.get("id"),
            "model": kwargs.get("model"),
            "input": usage.prompt_tokens if usage else None,
            "output": usage.completion_tokens if usage else None,
            "cost": kwargs.get("response_cost"),
            "at": end_time.isoformat(),
        }
        LOG.write(json.dumps(record) + "\n")


usage_log = UsageLog()
