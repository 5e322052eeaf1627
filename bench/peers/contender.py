"""One variant of one library as the driver sees it: builds it, starts its worker, asks it, stops it."""

import functools
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import engines
from engines.base import native_of
from process import Lost, Worker, last_words
from sets import K
from sets import recall as found_of

HERE = pathlib.Path(__file__).resolve().parent
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                                     "NUMEXPR_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")}
PAGES = {"huge": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, "small": {}}


class Contender:
    def __init__(self, chosen, data, engine, variant, version, key):
        self.chosen, self.data, self.engine, self.variant = chosen, data, engine, variant
        self.name = f"{engine} {variant.name}"
        self.version, self.skip = version, variant.skip
        digest = hashlib.sha256(json.dumps([key, version, variant.settings], sort_keys=True).encode()).hexdigest()
        plain = "".join(c if c.isalnum() or c in "-+=" else "-" for c in self.name)
        self.folder = chosen.work / data.name / f"{plain}-{digest[:12]}"
        self.built, self.worker, self.loaded, self.pages = {}, None, {}, "huge"
        self.log = self.folder.with_suffix(".log")
        self.log.parent.mkdir(parents=True, exist_ok=True)

    @property
    def python(self):
        return engines.python(self.engine, self.chosen.environments)

    @property
    def ours(self):
        return self.engine == "shortlist"

    def order(self, **more):
        return json.dumps({"engine": self.engine, "settings": self.variant.settings, "folder": str(self.folder),
                           "data": str(self.data.folder), "metric": self.data.metric, **more})

    def run_build(self, folder, said):
        """A process of its own builds into the folder; `said` then tells what it took, or why there is nothing."""
        order = self.order(folder=str(folder), threads=self.chosen.threads, said=str(said))
        with open(self.log, "w") as log:
            command = ["nice", self.python, str(HERE / "build_index.py"), order]
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

    def build_again(self):
        """Builds the same once more and keeps nothing of it but what it took."""
        folder = self.folder.with_name(self.folder.name + "-again")
        said = folder.with_suffix(".json")
        shutil.rmtree(folder, ignore_errors=True)
        said.unlink(missing_ok=True)
        self.run_build(folder, said)
        built = json.loads(said.read_text())
        shutil.rmtree(folder, ignore_errors=True)
        said.unlink()
        if "skip" in built:
            raise Lost(built["skip"])
        return built

    def build(self):
        """Builds what is not in the cache; on failure the variant is skipped with its reason. A failure is tried again
        unless the run before is to be kept."""
        said = self.folder.with_suffix(".json")
        if said.exists() and not self.chosen.keep and "skip" in json.loads(said.read_text()):
            said.unlink()
        if not said.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.run_build(self.folder, said)
        self.built = json.loads(said.read_text())
        self.skip = self.built.get("skip", "")
        if self.skip:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        if self.worker is not None:
            return
        sweep = self.variant.sweep
        warm = {sweep.key: sweep.ladder()[len(sweep.ladder()) // 3], **sweep.combinations()[0]}
        command = [self.python, str(HERE / "worker.py"), self.order(cpu=self.chosen.cpu, warm=warm)]
        self.worker = Worker(command, self.environment(), self.log)
        self.loaded = self.worker.hello

    def environment(self):
        return {**os.environ, **ONE_THREAD, **PAGES[self.pages]}

    def ask(self, params, mode, part, seconds, recall=False):
        try:
            self.start()
            return self.worker.ask(json.dumps({"params": params, "mode": mode, "part": part, "seconds": seconds,
                                               "recall": recall}))
        except Lost:
            self.worker = None
            raise

    def executed(self, params):
        """Counts the instructions of single queries; see native/instructions.c."""
        program = self.chosen.native / "native_instructions"
        if not program.exists():
            return {"why": "the program that counts instructions was not built"}
        try:
            self.start()
            return self.worker.ask(json.dumps({"params": params, "count": str(program.resolve())}))
        except Lost as why:
            self.worker = None
            return {"why": str(why)}

    def stop(self):
        if self.worker is not None:
            self.worker.stop()
            self.worker = None

    @functools.cached_property
    def native(self):
        """The program that asks its index without Python, or why there is none."""
        native = native_of(engines.engine(self.engine), self.variant.settings)
        if isinstance(native, str):
            return native
        return native if (self.chosen.native / native.program).exists() else f"{native.program} was not built"

    def ask_native(self, settings, seconds, recall):
        """{target: what the program measured} for the settings of one query a call."""
        queries, truth = self.data.queries_file(self.chosen.work / self.data.name / "queries", self.ours)
        kind = [self.variant.settings[self.native.kind]] if self.native.kind else []
        command = [str(self.chosen.native / self.native.program), str(self.folder / self.native.file), str(queries),
                   self.data.metric, str(self.chosen.cpu), str(K), *kind]
        worker = Worker(command, self.environment(), self.log)
        answers = {}
        for target, params in settings.items():
            values = self.native.values(self.folder, params)
            answer = worker.ask(" ".join(map(str, [seconds, int(recall), *values])))
            if recall:
                answer["recall"] = found_of(answer.pop("ids"), truth)
            answers[target] = answer
        worker.stop()
        return answers
