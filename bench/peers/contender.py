"""One variant of one library as the driver sees it: builds it, starts its worker, asks it, stops it."""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                     "NUMEXPR_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")}
PAGES = {"huge": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, "small": {}}
PAUSE_S = 600  # for which a worker may be silent before it is given up


class Lost(Exception):
    """The process ended or said nothing any more; why, as far as it told."""


def last_words(path, code):
    """What an ended process printed last, and how it ended."""
    lines = [line.strip() for line in pathlib.Path(path).read_text(errors="replace").splitlines() if line.strip()]
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return (lines[-1][:300] + f" ({how})") if lines else how


class Contender:
    def __init__(self, chosen, data, engine, variant, version, key):
        self.chosen, self.data, self.engine, self.variant = chosen, data, engine, variant
        self.name = f"{engine} {variant.name}"
        self.version, self.skip = version, variant.skip
        digest = hashlib.sha256(json.dumps([key, version, variant.settings], sort_keys=True).encode()).hexdigest()
        plain = "".join(c if c.isalnum() or c in "-+=" else "-" for c in self.name)
        self.folder = chosen.work / data.name / f"{plain}-{digest[:12]}"
        self.built, self.process, self.loaded, self.pages = {}, None, {}, "huge"
        self.log = self.folder.with_suffix(".log")
        self.log.parent.mkdir(parents=True, exist_ok=True)

    @property
    def ours(self):
        return self.engine == "shortlist"

    def order(self, **more):
        return json.dumps({"engine": self.engine, "settings": self.variant.settings, "folder": str(self.folder),
                           "data": str(self.data.folder), "metric": self.data.metric, **more})

    def build(self):
        """Builds what is not in the cache; on failure the variant is skipped with its reason. A failure is tried again
        unless the run before is to be kept."""
        said = self.folder.with_suffix(".json")
        if said.exists() and not self.chosen.keep and "skip" in json.loads(said.read_text()):
            said.unlink()
        if not said.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            order = self.order(threads=self.chosen.threads, said=str(said))
            with open(self.log, "w") as log:
                command = ["nice", sys.executable, str(HERE / "build_index.py"), order]
                child = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True,
                                         env={**os.environ, "OMP_NUM_THREADS": str(self.chosen.threads)})
                try:
                    child.wait(self.chosen.build_limit)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
                    said.write_text(json.dumps({"skip": f"not built within {self.chosen.build_limit:g} s"}))
                except BaseException:
                    os.killpg(child.pid, signal.SIGKILL)
                    raise
            if not said.exists():
                why = last_words(self.log, child.returncode)
                said.write_text(json.dumps({"skip": f"the build ended early: {why}"}))
        self.built = json.loads(said.read_text())
        self.skip = self.built.get("skip", "")
        if self.skip:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        if self.process is not None:
            return
        sweep = self.variant.sweep
        warm = {sweep.key: sweep.ladder()[len(sweep.ladder()) // 3], **sweep.combinations()[0]}
        log = open(self.log, "w")
        command = [sys.executable, str(HERE / "worker.py"), self.order(cpu=self.chosen.cpu, warm=warm)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                        env={**os.environ, **ONE_THREAD, **PAGES[self.pages]})
        log.close()
        self.loaded = self.answer()

    def answer(self):
        # A worker that hangs is ended by the alarm of its own process group's patience, not by a thread here.
        timer = signal.signal(signal.SIGALRM, self.give_up)
        signal.alarm(PAUSE_S)
        try:
            line = self.process.stdout.readline()
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, timer)
        if not line:
            code = self.process.wait()
            self.process = None
            raise Lost(f"its process ended: {last_words(self.log, code)}")
        return json.loads(line)

    def give_up(self, *_):
        self.process.kill()

    def ask(self, params, mode, part, seconds, recall=False):
        self.start()
        try:
            self.process.stdin.write(json.dumps({"params": params, "mode": mode, "part": part, "seconds": seconds,
                                                 "recall": recall}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # what it said last is read by answer()
        return self.answer()

    def stop(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None
