import logging
import signal
import threading

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connection

from inbox import queue
from inbox.models import Webhook

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Works off webhooks that are stored, shows dead ones, retries them, removes old ones."

    def add_arguments(self, parser):
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("work")
        commands.add_parser("dead")
        commands.add_parser("retry").add_argument("id", type=int)
        commands.add_parser("prune").add_argument("--days", type=int, default=32)

    def handle(self, *args, command, **options):
        if command == "work":
            self.work()
        elif command == "dead":
            for one in Webhook.objects.filter(state="dead").order_by("id"):
                self.stdout.write(f"{one.pk}  {one.type}  {one.key}  {one.attempts} attempts  {one.error}")
        elif command == "retry":
            if not queue.retry(options["id"]):
                raise CommandError(f"There is no dead webhook {options['id']}.")
        else:
            self.stdout.write(f"{queue.prune(options['days'])} removed")

    def work(self):
        stopped = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stopped.set())
        while not stopped.is_set():
            try:
                claimed = queue.claim()
                if claimed is not None:
                    queue.work(*claimed)
                    continue
            except (OperationalError, InterfaceError):
                log.exception("the database does not answer")
                connection.close()
            stopped.wait(1)
