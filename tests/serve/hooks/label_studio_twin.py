"""A Label Studio in memory, which answers as version 1.23.2 does."""

import json
import math

import httpx2

LEGACY, PERSONAL, ACCESS = "0" * 40, "eyJ.eyJ.refresh", "eyJ.eyJ.access"
SETTINGS = {"url": "https://labels.example.org", "project": 1, "token": LEGACY}
NOT_FOUND = httpx2.Response(404, json={"detail": "No Annotation matches the given query."})


def choice(label):
    value = {"choices": [label]}
    return [{"from_name": "sentiment", "to_name": "text", "type": "choices", "value": value}]


class LabelStudioTwin:
    """Tasks with annotations and predictions of one project."""

    def __init__(self, n_tasks=3):
        self.tasks = {
            number: {
                "id": number,
                "data": {"text": f"text {number}"},
                "annotations": [],
                "predictions": [],
            }
            for number in range(1, n_tasks + 1)
        }
        self.model_version = ""
        self.labels = ["Positive", "Negative"]
        self.requests = []
        self.failures = []  # answers to give first
        self.access_tokens = [ACCESS]
        self.after_page = None
        self.n_ids = 0

    def annotate(self, task, label, *, annotator=1, minute=0, **changes):
        self.n_ids += 1
        annotation = {
            "id": self.n_ids,
            "result": choice(label),
            "completed_by": annotator,
            "was_cancelled": False,
            "ground_truth": False,
            "created_at": f"2026-03-01T11:{minute:02}:00Z",
            "updated_at": f"2026-03-01T11:{minute:02}:00Z",
            "lead_time": 2.0,
            "task": task,
            **changes,
        }
        self.tasks[task]["annotations"].append(annotation)
        return annotation

    def webhook(self, action, annotation):
        return {
            "action": action,
            "annotation": annotation,
            "task": {"id": annotation["task"], "data": self.tasks[annotation["task"]]["data"]},
            "project": {"id": 1},
        }

    def transport(self):
        return httpx2.MockTransport(self.answer)

    def answer(self, request):
        content = json.loads(request.content) if request.content else None
        self.requests.append((request.method, request.url.path, content))
        if self.failures:
            return self.failures.pop(0)
        if request.url.path == "/api/token/refresh/":
            good = content == {"refresh": PERSONAL}
            return (
                httpx2.Response(200, json={"access": self.access_tokens[-1]})
                if good
                else (httpx2.Response(401, json={"detail": "Token is invalid"}))
            )
        allowed = (f"Token {LEGACY}", f"Bearer {self.access_tokens[-1]}")
        if request.headers.get("Authorization") not in allowed:
            return httpx2.Response(401, json={"detail": "no"})
        return self._answer(request, content)

    def _answer(self, request, content):
        path = request.url.path
        if path == "/api/tasks":
            return self._page(request.url.params)
        if path.startswith("/api/annotations/"):
            return self._annotation(int(path.split("/")[3]))
        if path == "/api/projects/1/":
            if request.method == "PATCH":
                self.model_version = content["model_version"]
            tag = {"type": "Choices", "to_name": ["text"], "labels": self.labels}
            return httpx2.Response(
                200,
                json={
                    "model_version": self.model_version,
                    "parsed_label_config": {"sentiment": tag},
                },
            )
        if path == "/api/projects/1/import/predictions":
            return self._import(content)
        if path.startswith("/api/predictions/"):
            return self._prediction(request.method, int(path.split("/")[3]), content)
        return httpx2.Response(404, json={"detail": "Not found."})

    def _page(self, params):
        page, size = int(params["page"]), int(params["page_size"])
        assert params["project"] == "1"
        assert params["fields"] == "all"
        tasks = list(self.tasks.values())
        if page > max(1, math.ceil(len(tasks) / size)):
            return httpx2.Response(404, json={"detail": "Invalid page."})
        some = json.loads(json.dumps(tasks[(page - 1) * size : page * size]))
        if self.after_page is not None:
            self.after_page(page)
        return httpx2.Response(200, json={"total": len(tasks), "tasks": some})

    def _annotation(self, number):
        for task in self.tasks.values():
            for annotation in task["annotations"]:
                if annotation["id"] == number:
                    return httpx2.Response(200, json=annotation)
        return NOT_FOUND

    def _import(self, content):
        n_created = 0
        for each in content:
            if each["result"][0]["value"]["choices"][0] not in self.labels:
                continue  # version 1.23.2 leaves invalid ones out, and answers 201
            self.n_ids += 1
            self.tasks[each["task"]]["predictions"].append({"id": self.n_ids, **each})
            n_created += 1
        return httpx2.Response(201, json={"created": n_created})

    def _prediction(self, method, number, content):
        for task in self.tasks.values():
            for prediction in list(task["predictions"]):
                if prediction["id"] == number:
                    if method == "DELETE":
                        task["predictions"].remove(prediction)
                        return httpx2.Response(204)
                    prediction.update(content)
                    return httpx2.Response(200, json=prediction)
        return NOT_FOUND
