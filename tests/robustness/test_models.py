"""A short form of `make models`: files of a package that is installed load, move as in MuJoCo and have the right derivative."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")
ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("models", ROOT / "tools" / "models.py")
models = importlib.util.module_from_spec(SPEC)
sys.modules["models"] = models
SPEC.loader.exec_module(models)


def test_the_models_of_gymnasium():
    files = models.model_files(Path(gymnasium.__file__).parent)
    results = [r for r in (models.look_at(path, 20) for path in files) if r is not None]
    assert len(results) >= 10
    for r in results:
        assert not r.refused and not r.error, (r.file, r.refused, r.error)
        assert r.acceleration < 1e-9 and r.solved == r.steps and r.gradient is not False, r
    text = models.report({"gymnasium": results})
    assert f"| gymnasium | {len(results)} | {len(results)} |" in text


def test_what_is_refused_is_counted(tmp_path):
    body = "<body name='b'><joint name='j'/><geom size='.1'/></body>"
    sucker = "<actuator><adhesion body='b' ctrlrange='0 1'/></actuator>"
    (tmp_path / "good.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    (tmp_path / "sucker.xml").write_text(f"<mujoco><worldbody>{body}</worldbody>{sucker}</mujoco>")
    (tmp_path / "part.xml").write_text("<mujocoinclude/>")
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")
    files = models.model_files(tmp_path)
    assert [f.name for f in files] == ["broken.xml", "good.xml", "sucker.xml"]
    results = [models.look_at(f, 5) for f in files]
    assert results[0] is None and not results[1].refused and "transmission by body" in results[2].refused
    assert "| 1 | " in models.report({"these": results[1:]}) and "sucker" in models.report({"these": results[1:]})
